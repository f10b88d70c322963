/**
 * Compares the objects that name this node with its journal, at the start and every few minutes (allocation rules 4 and 5). What is to be
 * done about a difference is in plan-reconciliation.ts. An object is asked for once more before anything follows from it, and released
 * only when two looks, a grace apart, found it as it was.
 * Effects: a timer; reads of the API server; those of the registry.
 */

import { ConfigError } from "../../config/config-error.ts";
import { ApiError, type KubeApi } from "../../kubernetes/kube-api.ts";
import { Latch } from "../../lib/latch.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import { type Adoption, UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { AllocationObjects } from "../../registry/kubernetes/allocation-objects.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/cluster-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation } from "../../registry/registry.ts";
import { allocationName, type IpAllocation } from "../../resources/ip-allocation.ts";
import { SWEEP_PAGE, SWEEP_RETRY_MS } from "./collector.ts";
import { SWEEP_PATIENCE_MS } from "./live-pods.ts";
import {
  claimantOf,
  isTakenForLost,
  judgeStranger,
  needsPublishing,
  type StrangerVerdict,
} from "./plan-reconciliation.ts";
import type { PodRow } from "./suspects.ts";

/** How often an agent compares the objects that name it with its journal: milliseconds, a quarter more or less. The watch tells of changes meanwhile. @limit */
export const RECONCILE_INTERVAL_MS = 180_000;

/** How often it looks whether that is due: milliseconds. @limit */
export const RECONCILE_TICK_MS = 1_000;

/** Objects that the journal lacks and that are asked for at once. @limit */
export const ADOPTIONS_AT_ONCE = 8;

type Confirmation = Extract<StrangerVerdict, { readonly kind: "confirm" }>;

/** What the reconciler needs of the cluster's registry. */
export type ReconciledRegistry = Pick<KubernetesRegistry, "list" | "findAddress" | "findOwner" | "adopt" | "republish">;

export interface ReconcilerTools {
  readonly api: KubeApi;
  readonly node: string;
  readonly registry: ReconciledRegistry;
  /** The objects that name this node, as the watch has them, by name. */
  readonly objects: () => ReadonlyMap<string, IpAllocation>;
  /** How often all of them were listed. A list follows when the watch has missed something, and then all are compared anew. */
  readonly lists?: () => number;
  /** False: not listed yet, or not heard of for too long. Nothing is done then. */
  readonly isSynced: () => boolean;
  /** Whether the row's pod is gone or finished, asked now: the collector's. */
  readonly isPodGone: (row: PodRow) => Promise<boolean>;
  /** Called after each comparison. */
  readonly onCompared: () => Promise<void>;
  /** `garbageCollection.grace`, as it is now. */
  readonly graceMs: () => number;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly log: Log;
}

export interface ReconcileReport {
  readonly adopted: readonly Allocation[];
  /** As they cool. */
  readonly released: readonly Allocation[];
  readonly republished: readonly Allocation[];
}

/** What became of objects without a row; `refused` are those that the API server did not let us judge. */
interface Settled extends Omit<ReconcileReport, "republished"> {
  readonly refused: number;
}

/** An object that nobody needs, as it was when that was first seen. */
interface Observation {
  readonly version: string;
  readonly sinceMs: number;
}

export class Reconciler {
  readonly #tools: ReconcilerTools;
  readonly #objects: AllocationObjects;
  readonly #closed = new AbortController();
  readonly #observations = new Map<string, Observation>();
  readonly #first = new Latch();
  readonly #timer: NodeJS.Timeout;
  #turn: Promise<unknown> = Promise.resolve();
  #isTicking = false;
  #dueMs = Number.NEGATIVE_INFINITY;
  #isFirst = true;
  /** As of the last comparison. */
  #lists = 0;
  #said = "";

  constructor(tools: ReconcilerTools) {
    this.#tools = tools;
    this.#objects = new AllocationObjects(tools.api);
    this.#timer = setInterval(() => void this.look(), RECONCILE_TICK_MS).unref();
  }

  /** Resolves when everything was compared once: before that an ADD of a pod that has an address might get another. */
  get compared(): Promise<void> {
    return this.awaitCompared();
  }

  /** The same, or the signal's reason. */
  awaitCompared(signal?: AbortSignal): Promise<void> {
    return this.#first.wait(signal);
  }

  /** Something was heard that does not wait for the next comparison. */
  hasten(): void {
    this.#dueMs = Math.min(this.#dueMs, this.#tools.nowMs());
  }

  /** Compares if it is time to. Never rejects. */
  async look(): Promise<void> {
    if (this.#isTicking || !this.#isTimely()) return;
    this.#isTicking = true;
    try {
      await this.compare();
      this.#said = "";
    } catch (error) {
      this.#tell(error);
    } finally {
      this.#isTicking = false;
    }
  }

  /** A list after the last comparison tells what no event did: records that are back after a restored backup. */
  #isTimely(): boolean {
    const { lists, nowMs } = this.#tools;
    return nowMs() >= this.#dueMs || (lists !== undefined && lists() > this.#lists);
  }

  /** Rejects when the API server or the journal cannot be asked; undefined while the watch is not synced. */
  compare(): Promise<ReconcileReport | undefined> {
    const done = this.#turn.then(() => this.#compare());
    this.#turn = done.catch(() => {});
    return done;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    const closed = new Error("The reconciler is closed");
    this.#closed.abort(closed);
    this.#first.fail(closed);
    await this.#turn;
  }

  async #compare(): Promise<ReconcileReport | undefined> {
    const { isSynced, objects, registry, nowMs, random } = this.#tools;
    this.#closed.signal.throwIfAborted();
    if (!isSynced()) return undefined;
    this.#lists = this.#tools.lists?.() ?? 0;
    // ADDs wait for the first one.
    this.#dueMs = nowMs() + (this.#isFirst ? RECONCILE_TICK_MS : SWEEP_RETRY_MS);
    const known = objects();
    const rows = new Set<string>();
    const republished: Allocation[] = [];
    for await (const row of listRows(this.#tools.registry, SWEEP_PAGE)) {
      const name = allocationName(row.ip, row.space);
      rows.add(name);
      if (await this.#isToPublish(row, known.get(name))) republished.push(row);
    }
    await Promise.all(republished.map((row) => registry.republish(row)));
    const strangers = [...known.values()].filter(({ name }) => !rows.has(name));
    const settled = await this.#settleAll(strangers);
    // Somebody else may have had an object, and have let go of it since: no watch of this node tells of that.
    const isUnfinished = republished.length > 0 || settled.refused > 0;
    const pauseMs = isUnfinished ? SWEEP_RETRY_MS : RECONCILE_INTERVAL_MS * (0.75 + 0.5 * random());
    this.#dueMs = Math.min(nowMs() + pauseMs, this.#observedDueMs());
    await this.#tools.onCompared();
    this.#isFirst = false;
    this.#first.open();
    return { republished, adopted: settled.adopted, released: settled.released };
  }

  /** A few pods at a time; the addresses of one pod after each other, as what the one gets matters to the next. */
  async #settleAll(strangers: readonly IpAllocation[]): Promise<Settled> {
    const names = new Set(strangers.map(({ name }) => name));
    for (const name of this.#observations.keys()) if (!names.has(name)) this.#observations.delete(name);
    const adopted: Allocation[] = [];
    const released: Allocation[] = [];
    let refused = 0;
    const waiting = [
      ...Map.groupBy(strangers, (object) => claimantOf(object, this.#tools.node)?.podUid ?? object.name).values(),
    ];
    const work = async (): Promise<void> => {
      for (let group = waiting.pop(); group !== undefined; group = waiting.pop()) {
        for (const object of group) {
          const row = await this.#settle(object).catch((error: unknown) => {
            if (this.#skip(object, error)) refused++;
            return undefined;
          });
          if (row !== undefined)
            (row.state === "Cooling" && object.spec.state !== "Cooling" ? released : adopted).push(row);
        }
      }
    };
    await Promise.all(Array.from({ length: ADOPTIONS_AT_ONCE }, work));
    return { adopted, released, refused };
  }

  /** The row that was written; undefined when there was nothing to do, or not yet. */
  async #settle(seen: IpAllocation): Promise<Allocation | undefined> {
    if ((await this.#judge(seen)).kind === "leave") return undefined;
    const { signal } = this.#closed;
    const object = await this.#objects.get(seen.name, { lane: "background", patienceMs: SWEEP_PATIENCE_MS, signal });
    if (object === undefined) return undefined;
    const verdict = await this.#judge(object);
    if (verdict.kind === "adopt") return this.#adopt(verdict.adoption);
    if (verdict.kind === "confirm") return this.#confirm(object, verdict);
    if (verdict.kind !== "release" || !this.#isDue(object)) return undefined;
    const row: PodRow = { ...verdict.adoption, state: "Bound", containerId: UNKNOWN_CONTAINER };
    if (verdict.ifPodGone && !(await this.#tools.isPodGone(row))) return undefined;
    this.#observations.delete(object.name);
    return this.#release(verdict.adoption);
  }

  /** Allocation rule 2: this node was lost. What its pod has, it has; what nobody has, goes. */
  async #confirm(object: IpAllocation, { adoption, ended }: Confirmation): Promise<Allocation | undefined> {
    if (!(await this.#tools.isPodGone({ ...adoption, containerId: UNKNOWN_CONTAINER }))) return this.#adopt(adoption);
    if (!this.#isDue(object)) return undefined;
    this.#observations.delete(object.name);
    return this.#release(ended);
  }

  async #isToPublish(row: Allocation, object: IpAllocation | undefined): Promise<boolean> {
    const { node, isPodGone } = this.#tools;
    if (needsPublishing(row, object, node)) return true;
    return isTakenForLost(row, object, node) && !(await isPodGone(row));
  }

  /** What cannot be understood, or is refused by the API server, keeps nothing else waiting. Answers whether another try is worth while. */
  #skip({ name }: IpAllocation, error: unknown): boolean {
    if (!(error instanceof ConfigError || error instanceof ApiError)) throw error;
    this.#tools.log.warn(
      { err: error, address: name },
      "An allocation of this node cannot be judged; it stays as it is",
    );
    return error instanceof ApiError;
  }

  async #judge(object: IpAllocation): Promise<StrangerVerdict> {
    const { registry, node, nowMs } = this.#tools;
    const { ip, addressSpace } = object.spec;
    if ((await registry.findAddress(addressSpace, ip)) !== undefined) return { kind: "leave" };
    const owner = claimantOf(object, node)?.podUid;
    const ownRows = owner === undefined ? [] : await registry.findOwner(owner);
    return judgeStranger({ object, node, ownRows, nowMs: nowMs() });
  }

  async #adopt(adoption: Adoption): Promise<Allocation | undefined> {
    const row = await this.#tools.registry.adopt(adoption);
    if (row !== undefined) this.#log(row, "An allocation of this node that the journal lacked was taken in");
    return row;
  }

  /** Taken in as Cooling: when that is over, the object goes. */
  async #release(adoption: Adoption): Promise<Allocation | undefined> {
    const row = await this.#tools.registry.adopt(adoption);
    if (row !== undefined) this.#log(row, "An allocation of this node that no NIC has goes back");
    return row;
  }

  #log({ ip, pool, state, namespace, pod, owner, ifName }: Allocation, text: string): void {
    this.#tools.log.info({ address: formatIp(ip), pool, state, namespace, pod, owner, ifName }, text);
  }

  /** Whether it was seen like this a grace ago; else it is now. */
  #isDue({ name, uid, resourceVersion }: IpAllocation): boolean {
    const { nowMs, graceMs } = this.#tools;
    const version = `${uid}/${resourceVersion}`;
    const before = this.#observations.get(name);
    if (before?.version === version) return nowMs() - before.sinceMs >= graceMs();
    this.#observations.set(name, { version, sinceMs: nowMs() });
    return false;
  }

  #observedDueMs(): number {
    const graceMs = this.#tools.graceMs();
    const due = [...this.#observations.values()].map(({ sinceMs }) => sinceMs + graceMs);
    return Math.max(Math.min(...due, Number.POSITIVE_INFINITY), this.#tools.nowMs() + SWEEP_RETRY_MS);
  }

  /** Trouble lasts: it is told once. */
  #tell(error: unknown): void {
    if (this.#closed.signal.aborted) return;
    if (String(error) !== this.#said) {
      this.#tools.log.warn({ err: error }, "Comparing the allocations of this node failed; it is tried again");
    }
    this.#said = String(error);
  }
}
