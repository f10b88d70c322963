/**
 * Reconciles this node's journal with the objects that name it, at the start and every few minutes (undo, recreate). plan-reconciliation.ts decides
 * about each difference. An object is read once more before anything is done about it, and released only when two observations, a grace apart,
 * found it unchanged.
 */
import { ConfigError } from "../../config/config-error.ts";
import { ApiError, type KubeApi } from "../../kubernetes/kube-api.ts";
import type { Reflector } from "../../kubernetes/reflector.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { Latch } from "../../lib/latch.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { SerialQueue } from "../../lib/serial.ts";
import { formatIp } from "../../net/ip.ts";
import { type Adoption, UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { AllocationObjects } from "../../registry/kubernetes/allocation-objects.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation } from "../../registry/registry.ts";
import { allocationName, type IpAllocation } from "../../resources/ip-allocation.ts";
import { type Collector, type PodRow, SWEEP_PAGE, SWEEP_RETRY_MS } from "./collector.ts";
import { SWEEP_PATIENCE_MS } from "./live-status.ts";
import type { LostAddresses } from "./lost-addresses.ts";
import {
  claimantOf,
  decideOrphanObject,
  isObjectOf,
  isReportedLost,
  needsPublishing,
  type OrphanObjectAction,
} from "./plan-reconciliation.ts";

/** How often an agent reconciles its journal with the objects that name it: milliseconds, give or take a quarter. The watch reports changes meanwhile. @limit */
export const RECONCILE_INTERVAL_MS = 180_000;

/** How often the reconciler checks whether that is due: milliseconds. @limit */
export const RECONCILE_TICK_MS = 1_000;

/** Most pods whose objects without a journal row are handled at once. @limit */
export const ADOPTIONS_AT_ONCE = 8;

/** The part of the cluster's registry that the reconciler needs. */
export type ReconciledRegistry = Pick<KubernetesRegistry, "list" | "findAddress" | "findOwner" | "adopt" | "republish">;

export interface ReconcilerDeps {
  readonly api: KubeApi;
  /** This node's name. */
  readonly node: string;
  readonly registry: ReconciledRegistry;
  /** The objects that name this node, by name. While they are not synced nothing is reconciled. */
  readonly objects: Pick<Reflector<IpAllocation>, "items" | "isSynced" | "stats">;
  readonly collector: Pick<Collector, "isPodGone">;
  /** Pruned after each reconciliation. */
  readonly lost: Pick<LostAddresses, "prune">;
  readonly log: Log;
}

export interface ReconcilerOptions {
  /** Returns `garbageCollection.grace` as it is now. */
  readonly graceMs: () => number;
  readonly nowMs: () => number;
  readonly random: () => number;
}

export interface ReconcileReport {
  readonly adopted: readonly Allocation[];
  /** As Cooling. */
  readonly released: readonly Allocation[];
  readonly republished: readonly Allocation[];
}

/** The result of handling objects without a row; `refused` counts those that the API server did not let the agent read. */
interface OrphanReport extends Omit<ReconcileReport, "republished"> {
  readonly refused: number;
}

type Confirmation = Extract<OrphanObjectAction, { readonly kind: "confirm" }>;

/** An unneeded object, as it was when that was first observed. */
interface Observation {
  readonly version: string;
  readonly sinceMs: number;
}

export class Reconciler {
  readonly #deps: ReconcilerDeps;
  readonly #options: ReconcilerOptions;
  readonly #allocations: AllocationObjects;
  readonly #closed = new AbortController();
  readonly #observations = new Map<string, Observation>();
  readonly #first = new Latch();
  readonly #queue = new SerialQueue();
  readonly #worker: PeriodicWorker;
  #dueMs = Number.NEGATIVE_INFINITY;
  #isFirst = true;
  /** As of the last reconciliation. */
  #lists = 0;

  constructor(deps: ReconcilerDeps, options: ReconcilerOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#allocations = new AllocationObjects(deps.api);
    this.#worker = new PeriodicWorker({
      failure: "Reconciling the allocations of this node failed",
      isDue: () => this.isDue,
      work: async () => {
        await this.reconcile();
        return RECONCILE_TICK_MS;
      },
      firstMs: RECONCILE_TICK_MS,
      checkMs: RECONCILE_TICK_MS,
      retryMs: () => RECONCILE_TICK_MS,
      signal: this.#closed.signal,
      log: deps.log,
    });
  }

  /**
   * Resolves after the first reconciliation: an ADD before that might give a pod another address than it has. Rejects with the signal's reason, and
   * when the reconciler is closed first.
   */
  reconciled(signal?: AbortSignal): Promise<void> {
    return this.#first.wait(signal);
  }

  /** Makes a reconciliation due now. */
  hasten(): void {
    this.#dueMs = Math.min(this.#dueMs, this.#options.nowMs());
  }

  /** Checks now, not with the next tick, whether a reconciliation is due. */
  wake(): void {
    this.#worker.wake();
  }

  /** Reconciles now. Returns undefined while the objects are not synced; rejects when the API server or the journal does not answer. */
  reconcile(): Promise<ReconcileReport | undefined> {
    return this.#queue.run(() => this.#reconcile());
  }

  async close(): Promise<void> {
    const closed = new Error("The reconciler is closed");
    this.#closed.abort(closed);
    this.#first.fail(closed);
    await this.#worker.close();
    await this.#queue.idle();
  }

  /** Returns whether the interval is over, or the watch has listed anew: a list may show what no event reported, such as records of a restored backup. */
  get isDue(): boolean {
    return this.#options.nowMs() >= this.#dueMs || this.#deps.objects.stats.lists > this.#lists;
  }

  async #reconcile(): Promise<ReconcileReport | undefined> {
    const { objects, registry, lost, node } = this.#deps;
    const { nowMs, random } = this.#options;
    this.#closed.signal.throwIfAborted();
    if (!objects.isSynced) return undefined;
    this.#lists = objects.stats.lists;
    // ADDs wait for the first one.
    this.#dueMs = nowMs() + (this.#isFirst ? RECONCILE_TICK_MS : SWEEP_RETRY_MS);
    const rows = new Set<string>();
    const republished: Allocation[] = [];
    for await (const row of listRows(registry, SWEEP_PAGE)) {
      const name = allocationName(row.ip, row.space);
      rows.add(name);
      if (await this.#needsPublishing(row, objects.items.get(name))) republished.push(row);
    }
    await Promise.all(republished.map((row) => registry.republish(row)));
    const orphans = [...objects.items.values()].filter(({ name }) => !rows.has(name));
    const { adopted, released, refused } = await this.#handleOrphans(orphans);
    // Another node may have had an object and given it up since; no watch of this node reports that.
    const isUnfinished = republished.length > 0 || refused > 0;
    const pauseMs = isUnfinished ? SWEEP_RETRY_MS : RECONCILE_INTERVAL_MS * (0.75 + 0.5 * random());
    this.#dueMs = Math.min(nowMs() + pauseMs, this.#observedDueMs());
    await lost.prune(registry, (row) => {
      const object = objects.items.get(allocationName(row.ip, row.space));
      return object !== undefined && isObjectOf(row, object, node);
    });
    this.#isFirst = false;
    this.#first.open();
    return { republished, adopted, released };
  }

  async #needsPublishing(row: Allocation, object: IpAllocation | undefined): Promise<boolean> {
    const { node, collector } = this.#deps;
    if (needsPublishing(row, object, node)) return true;
    return isReportedLost(row, object, node) && !(await collector.isPodGone(row));
  }

  /** Several pods at once; the objects of one pod one by one, as the outcome of one matters to the next. */
  async #handleOrphans(orphans: readonly IpAllocation[]): Promise<OrphanReport> {
    const names = new Set(orphans.map(({ name }) => name));
    for (const name of this.#observations.keys()) if (!names.has(name)) this.#observations.delete(name);
    const adopted: Allocation[] = [];
    const released: Allocation[] = [];
    let refused = 0;
    const byPod = Map.groupBy(orphans, (object) => claimantOf(object, this.#deps.node)?.podUid ?? object.name);
    await inParallel([...byPod.values()], ADOPTIONS_AT_ONCE, async (group) => {
      for (const object of group) {
        try {
          const row = await this.#handleOrphan(object);
          const isReleased = row?.state === "Cooling" && object.spec.state !== "Cooling";
          if (row !== undefined) (isReleased ? released : adopted).push(row);
        } catch (error) {
          if (!(error instanceof ConfigError || error instanceof ApiError)) throw error;
          const about = { err: error, address: object.name };
          this.#deps.log.warn(about, "Reading an allocation of this node failed; it stays as it is");
          // One that cannot be decoded is not worth another try soon.
          if (error instanceof ApiError) refused++;
        }
      }
    });
    return { adopted, released, refused };
  }

  /** Returns the row that was written; undefined when there is nothing to do, or not yet. */
  async #handleOrphan(watched: IpAllocation): Promise<Allocation | undefined> {
    if ((await this.#decide(watched)).kind === "leave") return undefined;
    const terms = { lane: "background", patienceMs: SWEEP_PATIENCE_MS, signal: this.#closed.signal } as const;
    const object = await this.#allocations.get(watched.name, terms);
    if (object === undefined) return undefined;
    const action = await this.#decide(object);
    if (action.kind === "adopt") return this.#adopt(action.adoption);
    if (action.kind === "confirm") return this.#confirm(object, action);
    if (action.kind !== "release" || !this.#isObservedLongEnough(object)) return undefined;
    const row: PodRow = { ...action.adoption, state: "Bound", containerId: UNKNOWN_CONTAINER };
    if (action.ifPodGone && !(await this.#deps.collector.isPodGone(row))) return undefined;
    this.#observations.delete(object.name);
    return this.#release(action.adoption);
  }

  /** This node was taken for lost (node-lost): its pod keeps the address; without that pod the address is released. */
  async #confirm(object: IpAllocation, { adoption, ended }: Confirmation): Promise<Allocation | undefined> {
    const row: PodRow = { ...adoption, containerId: UNKNOWN_CONTAINER };
    if (!(await this.#deps.collector.isPodGone(row))) return this.#adopt(adoption);
    if (!this.#isObservedLongEnough(object)) return undefined;
    this.#observations.delete(object.name);
    return this.#release(ended);
  }

  async #decide(object: IpAllocation): Promise<OrphanObjectAction> {
    const { registry, node } = this.#deps;
    const { ip, addressSpace } = object.spec;
    if ((await registry.findAddress(addressSpace, ip)) !== undefined) return { kind: "leave" };
    const owner = claimantOf(object, node)?.podUid;
    const ownRows = owner === undefined ? [] : await registry.findOwner(owner);
    return decideOrphanObject({ object, node, ownRows, nowMs: this.#options.nowMs() });
  }

  async #adopt(adoption: Adoption): Promise<Allocation | undefined> {
    const row = await this.#deps.registry.adopt(adoption);
    if (row !== undefined) this.#log(row, "Adopted an allocation of this node that the journal lacked");
    return row;
  }

  /** Adopts the object as Cooling; it is deleted when the row has cooled. */
  async #release(adoption: Adoption): Promise<Allocation | undefined> {
    const row = await this.#deps.registry.adopt(adoption);
    if (row !== undefined) this.#log(row, "Released an allocation of this node that no NIC has");
    return row;
  }

  #log({ ip, pool, state, namespace, pod, owner, ifName }: Allocation, text: string): void {
    this.#deps.log.info({ address: formatIp(ip), pool, state, namespace, pod, owner, ifName }, text);
  }

  /** Returns whether the same version was observed a grace ago; if not, observes it now. */
  #isObservedLongEnough({ name, uid, resourceVersion }: IpAllocation): boolean {
    const { nowMs, graceMs } = this.#options;
    const version = `${uid}/${resourceVersion}`;
    const before = this.#observations.get(name);
    if (before?.version === version) return nowMs() - before.sinceMs >= graceMs();
    this.#observations.set(name, { version, sinceMs: nowMs() });
    return false;
  }

  #observedDueMs(): number {
    const { nowMs, graceMs } = this.#options;
    const due = [...this.#observations.values()].map(({ sinceMs }) => sinceMs + graceMs());
    return Math.max(Math.min(...due, Number.POSITIVE_INFINITY), nowMs() + SWEEP_RETRY_MS);
  }
}
