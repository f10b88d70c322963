/**
 * Settles the registry's epoch when every node that had an agent has written what its pods have (registry-epoch), and
 * begins one when the cache of allocations shows that the API server went back in time. plan-epoch.ts decides.
 */
import { randomUUID } from "node:crypto";
import { isConflict } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath, NODES } from "../../kubernetes/paths.ts";
import { KubernetesEpoch } from "../../registry/epoch/kubernetes-epoch.ts";
import { decodeNode, type Node } from "../../resources/node.ts";
import { EPOCH_ANNOTATION, type EpochRecord, KINDS_AWAY } from "../../resources/registry-epoch.ts";
import { settingsOf } from "../caches.ts";
import { nodeStatus } from "../gc/read-status.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { planEpoch, planRecord } from "./plan-epoch.ts";

/** Shortest time between two passes: milliseconds. */
const EPOCH_REST_MS = 200;

/** Interval at which an open epoch is looked at without a change: milliseconds. */
const EPOCH_CHECK_MS = 5_000;

export const startEpoch: StartController = (deps) => {
  const { caches } = deps;
  const since = new NotReadySince(deps);
  let waitingNodes = 0;
  const loop = startReconciling(deps, {
    failure: "Settling the registry's epoch failed",
    work: () =>
      update(deps, since, (waiting) => {
        waitingNodes = waiting.length;
      }),
    restMs: () => EPOCH_REST_MS,
  });
  const ends = [
    caches.epoch.subscribe(() => loop.wake()),
    caches.nodes.subscribe((change) => {
      const [now, before] = [change.kind === "set" ? change.value : undefined, change.before];
      if (nodeStatus(now) === "ready") since.forget(change.key);
      if (markedAs(now) !== markedAs(before) || nodeStatus(now) !== nodeStatus(before)) loop.wake();
    }),
  ];
  return {
    get problems() {
      const { waitsFor = "", definition } = openRecordOf(deps) ?? {};
      if (waitsFor === "") return loop.problems;
      const whom = definition === "" ? KINDS_AWAY : `node ${waitsFor}`;
      return [`The registry has just appeared or went back in time; it waits for ${whom}`, ...loop.problems];
    },
    get measurements() {
      return { epoch: openRecordOf(deps) && { waitingNodes } };
    },
    close: async () => {
      for (const end of ends) end();
      await loop.close();
    },
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

/** Returns after how many milliseconds to look again; undefined: with the next change. */
async function update(
  deps: ControllerDeps,
  since: NotReadySince,
  onWaiting: (nodes: readonly string[]) => void,
): Promise<number | undefined> {
  const { api, caches, leading, log } = deps;
  const record = recordOf(deps);
  if (record === undefined || record.epoch === "") return undefined;
  const port = new KubernetesEpoch({ api, configNamespace: record.namespace, newEpoch: randomUUID });
  if (caches.undoneEpoch === record.epoch) {
    log.warn("The API server went back in time; agents write again what their pods have");
    await port.begin(new Set([record.epoch]), "history");
    return undefined;
  }
  if (record.settled === record.epoch) return undefined;
  const plan = (nodes: Iterable<Node>): readonly string[] =>
    planEpoch({
      ...{ epoch: record.epoch, nodes },
      notReadyMs: (node) => since.ageMs(node),
      nodeLostMs: settingsOf(caches).garbageCollection.nodeLostMs,
    });
  let waiting = plan(caches.nodes.items.values());
  // A cache may lack a node that has just marked its first epoch.
  if (waiting.length === 0) waiting = plan(await readNodes(deps));
  onWaiting(waiting);
  const planned = planRecord(record, waiting);
  if (planned === undefined) return EPOCH_CHECK_MS;
  try {
    await port.write(planned, leading);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
  if (waiting.length === 0) log.info({ epoch: record.epoch }, "All nodes have written what their pods have");
  return EPOCH_CHECK_MS;
}

async function readNodes({ api, leading }: Pick<ControllerDeps, "api" | "leading">): Promise<readonly Node[]> {
  const found: Node[] = [];
  for await (const { items } of listPages(api, { path: collectionPath(NODES), signal: leading }))
    for (const item of items) found.push(decodeNode(item, "Node"));
  return found;
}

/** Since when each node has not been ready, as this process has seen it. */
class NotReadySince {
  readonly #nowMs: () => number;
  readonly #since = new Map<string, number>();

  constructor({ clock }: Pick<ControllerDeps, "clock">) {
    this.#nowMs = clock.nowMs;
  }

  forget(node: string): void {
    this.#since.delete(node);
  }

  /** Of a node that is not ready; asked again and again while an epoch is open. */
  ageMs(node: string): number {
    const since = this.#since.get(node) ?? this.#nowMs();
    this.#since.set(node, since);
    return this.#nowMs() - since;
  }
}
