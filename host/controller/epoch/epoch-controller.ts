/**
 * Settles the registry's epoch when every node that had an agent has written its pods' addresses (registry-epoch), and
 * restores its ConfigMap when that is missing or emptied. Begins an epoch when the API server has lost one of the
 * unique values that the leader adds every minute. plan-epoch.ts decides.
 */

import { randomUUID } from "node:crypto";
import { isConflict } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { valueAfter } from "../../kubernetes/mirror.ts";
import { CONFIG_MAPS, collectionPath, NODES, objectPath } from "../../kubernetes/paths.ts";
import { orElse } from "../../lib/try-or.ts";
import { KubernetesEpoch } from "../../registry/epoch/kubernetes-epoch.ts";
import { decodeNode, type Node } from "../../resources/node.ts";
import {
  EPOCH_ANNOTATION,
  EPOCH_MAP,
  type EpochRecord,
  isWithoutBeats,
  KINDS_AWAY,
  MAX_BEATS,
  WRITTEN,
} from "../../resources/registry-epoch.ts";
import { settingsOf } from "../caches.ts";
import { nodeStatus } from "../gc/read-status.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { type EpochPlan, planEpoch, planRecord } from "./plan-epoch.ts";

/** Shortest time between two passes: milliseconds. */
const EPOCH_REST_MS = 200;

/** Interval at which an open epoch is checked without a change: milliseconds. */
const EPOCH_CHECK_MS = 5_000;

/** Time for which the ConfigMap may be missing or empty, since a replacement deletes it first: milliseconds. */
const AWAY_MS = 5_000;

/** Interval at which a unique value is added: milliseconds. */
const BEAT_MS = 60_000;

class State {
  /** The last values of the ConfigMap that this process has seen. */
  beats: readonly string[] = [];
  beatMs = Number.NEGATIVE_INFINITY;
  /** Whether the ConfigMap is missing or empty. */
  isAway = false;
  waitingNodes = 0;
  /** Start of each node's not being ready, and of other states, as this process has seen it. */
  readonly since = new Map<string, number>();
}

export const startEpoch: StartController = (deps) => {
  const { caches } = deps;
  const state = new State();
  const loop = startReconciling(deps, {
    failure: "Settling the registry's epoch failed",
    work: () => update(deps, state),
    restMs: () => EPOCH_REST_MS,
    follow: (wake) => [
      caches.epoch.subscribe(wake),
      caches.vendorConf.subscribe(wake),
      caches.nodes.subscribe((change) => {
        const [now, before] = [valueAfter(change), change.before];
        if (nodeStatus(now) === "ready") state.since.delete(`node ${change.key}`);
        if (markedAs(now) !== markedAs(before) || nodeStatus(now) !== nodeStatus(before)) wake();
      }),
    ],
  });
  return {
    get problems() {
      const { waitsFor = "", definition } = openRecordOf(deps) ?? {};
      const away = state.isAway ? [`The ConfigMap ${EPOCH_MAP} is missing or empty`] : [];
      const record = recordOf(deps);
      if (record?.probed === record?.epoch && record?.waitsFor)
        away.push(`First addresses are probed: node ${record.waitsFor} is away and has not written what its pods have`);
      if (waitsFor === "") return [...away, ...loop.problems];
      const whom = definition === "" ? KINDS_AWAY : `node ${waitsFor}`;
      return [`The registry has just appeared or went back in time; it waits for ${whom}`, ...away, ...loop.problems];
    },
    get measurements() {
      return { epoch: openRecordOf(deps) && { waitingNodes: state.waitingNodes } };
    },
    close: () => loop.close(),
  };
};

function markedAs(node: Node | undefined): string | undefined {
  return node?.annotations[EPOCH_ANNOTATION];
}

function recordOf({ caches }: Pick<ControllerDeps, "caches">): EpochRecord | undefined {
  return [...caches.epoch.items.values()][0];
}

function openRecordOf(deps: Pick<ControllerDeps, "caches">): EpochRecord | undefined {
  const record = recordOf(deps);
  return record?.settled === record?.epoch ? undefined : record;
}

/** Returns the time until the next check: milliseconds; undefined to wait for a change. */
async function update(deps: ControllerDeps, state: State): Promise<number | undefined> {
  const { api, caches, leading, log, clock } = deps;
  const ageMs = (what: string): number => clock.nowMs() - state.since.getOrInsert(what, clock.nowMs());
  const port = new KubernetesEpoch({ api, configNamespace: caches.configNamespace, newEpoch: randomUUID });
  const record = recordOf(deps);
  // A cluster without nodes has no epoch yet.
  const isNew = record?.epoch === "" && !Iterator.from(caches.nodes.items.values()).some(markedAs);
  state.isAway = record === undefined || (record.epoch === "" && !isNew);
  if (isNew) return undefined;
  if (record === undefined || record.epoch === "") {
    const restMs = AWAY_MS - ageMs("away");
    if (restMs > 0) return restMs;
    await restore(deps, port);
    return EPOCH_CHECK_MS;
  }
  state.since.delete("away");
  // A cache may be late.
  if (isWithoutBeats(state.beats, record.beats) && isWithoutBeats(state.beats, (await port.read())?.beats ?? [])) {
    log.warn("The API server went back in time; agents write again what their pods have");
    state.beats = [];
    await port.begin(new Set([record.epoch]), "history");
    return EPOCH_REST_MS;
  }
  state.beats = record.beats;
  const beatRestMs = deps.isLeading?.() === false ? EPOCH_CHECK_MS : await beat(deps, record, state);
  if (record.settled === record.epoch && record.probed !== record.epoch) return beatRestMs;
  const writtenMs = record.settled === record.epoch ? ageMs(`epoch ${record.epoch}`) : 0;
  const plan = (nodes: Iterable<Node>): EpochPlan =>
    planEpoch({
      ...{ epoch: record.epoch, nodes },
      notReadyMs: (node) => ageMs(`node ${node}`),
      nodeLostMs: settingsOf(caches).garbageCollection.nodeLostMs,
    });
  let found = plan(caches.nodes.items.values());
  // A cache may lack a node that has just marked its first epoch.
  if (found.waiting.length === 0 && record.settled !== record.epoch) found = plan(await readNodes(deps));
  state.waitingNodes = found.waiting.length;
  const planned = planRecord(record, found, writtenMs);
  if (planned === undefined) return EPOCH_CHECK_MS;
  await port.write(planned, leading).catch(orElse(isConflict, undefined));
  if (planned.settled !== record.settled)
    log.info({ epoch: record.epoch }, "All nodes have written what their pods have");
  return EPOCH_CHECK_MS;
}

/** Restores the ConfigMap from the nodes' marks: an emptied one does not mean that the registry went back. */
async function restore(deps: ControllerDeps, port: KubernetesEpoch): Promise<void> {
  const marks = new Set((await readNodes(deps)).flatMap(({ annotations }) => annotations[EPOCH_ANNOTATION] ?? []));
  const found = await port.make(deps.leading);
  if (found.epoch !== "") return;
  const [mark = ""] = marks;
  const isComplete = marks.size === 1 && !mark.endsWith(WRITTEN);
  const terms = { now: deps.clock.now(), signal: deps.leading };
  // Some nodes had not written yet, or agents and kinds may be another installation's: all write once more.
  if (marks.size > 0 && !(isComplete && (await port.settle(found, mark, terms))))
    await port.begin(new Set(), "history");
  deps.log.warn({ epoch: mark }, `The ConfigMap ${EPOCH_MAP} was missing or empty, and is made again`);
}

/** Adds a unique value, and keeps the content of vendor-conf. Returns the time until the next one: milliseconds. */
async function beat(deps: ControllerDeps, record: EpochRecord, state: State): Promise<number> {
  const { api, caches, clock, random, leading: signal } = deps;
  const [map] = caches.vendorConf.items.values();
  const settings = caches.vendorConf.problems.length === 0 && map?.text.trim() ? map.text : record.settings;
  const restMs = state.beatMs + BEAT_MS - clock.nowMs();
  if (restMs > 0 && settings === record.settings) return restMs;
  const next = Math.floor(random() * 2 ** 40).toString(36);
  const body = { data: { beats: [...record.beats, next].slice(-MAX_BEATS).join(" "), settings } };
  const path = objectPath(CONFIG_MAPS, { namespace: record.namespace, name: EPOCH_MAP });
  await patchIfSame(api, { path, uid: record.uid, resourceVersion: record.resourceVersion, body, signal });
  state.beatMs = clock.nowMs();
  return BEAT_MS;
}

async function readNodes({ api, leading }: Pick<ControllerDeps, "api" | "leading">): Promise<readonly Node[]> {
  const found: Node[] = [];
  for await (const { items } of listPages(api, { path: collectionPath(NODES), signal: leading }))
    for (const item of items) found.push(decodeNode(item, "Node"));
  return found;
}
