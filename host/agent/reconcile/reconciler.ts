/**
 * Reconciles this node's journal with the objects that name it (undo, recreate): with all of them at the start and
 * when records may have vanished unseen, with single ones when the controller sends a notice (docs/decisions/0035).
 * plan-reconciliation.ts decides about each difference. An object is read once more before anything is done about it,
 * and released only when two observations, a grace apart, found it unchanged.
 */
import { ConfigError } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, type KubeApi } from "../../kubernetes/kube-api.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { Latch } from "../../lib/latch.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { SerialQueue } from "../../lib/serial.ts";
import { formatIp } from "../../net/ip.ts";
import { compareRecords } from "../../registry/claims.ts";
import { type Adoption, UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { type CallTerms, listNodeAllocations, readAllocation } from "../../registry/kubernetes/allocation-objects.ts";
import { foreignOf, nameOf } from "../../registry/kubernetes/known-object.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { NoticedAllocations } from "../../resources/allocation-notice.ts";
import { type IpAllocation, parseAllocationName } from "../../resources/ip-allocation.ts";
import { type Collector, type PodRow, SWEEP_RETRY_MS } from "../gc/collector.ts";
import type { LostAddresses } from "../gc/lost-addresses.ts";
import type { OwnMachine } from "../liveness/own-machine.ts";
import {
  claimantOf,
  decideOrphanObject,
  isObjectOf,
  isOlderThan,
  isReportedLost,
  needsPublishing,
  type OrphanObjectAction,
} from "./plan-reconciliation.ts";

/**
 * Interval at which an agent asks whether a controller sends notices: milliseconds, give or take a quarter. If none
 * did all the time, it reconciles with all objects of its node.
 */
export const RECONCILE_INTERVAL_MS = 180_000;

/** Interval, ± a quarter, at which an agent reconciles with all objects of its node in any case: milliseconds. */
export const RECONCILE_ALL_MS = 3_600_000;

/** Interval at which the reconciler checks for due work: milliseconds. */
export const RECONCILE_TICK_MS = 1_000;

/** Time for which a reconciliation tries one read of objects: milliseconds. The next one reads again. */
const RECONCILE_PATIENCE_MS = 10_000;

/**
 * Longest time of the first attempt to read one object; each later one may take twice as long: milliseconds. So much
 * a lost answer delays a started agent's ADDs.
 */
const RECONCILE_READ_MS = 1_000;

/** The same of the list of this node's objects, which takes a busy server longer: milliseconds. */
const RECONCILE_LIST_MS = 3_000;

/** Most pods whose objects without a journal row are handled at once, and most rows whose pods are read at once. */
export const ADOPTIONS_AT_ONCE = 8;

/** Most objects that are read at once because of a notice. */
const NOTICED_READS_AT_ONCE = 4;

/** The part of the cluster's registry that the reconciler needs. */
interface ReconciledRegistry
  extends Pick<KubernetesRegistry, "list" | "findAddress" | "findOwner" | "adopt" | "republish"> {
  readonly objects: Pick<KubernetesRegistry["objects"], "observe" | "forgetRetained" | "sync">;
}

export interface ReconcilerDeps {
  readonly api: KubeApi;
  /** This node's name. */
  readonly node: string;
  readonly registry: ReconciledRegistry;
  /**
   * Number of times that watches of this node have listed anew: then records may have vanished with no event, as when
   * etcd was restored.
   */
  readonly relists: () => number;
  /** Looks whether the registry went back, before anything is made good. Never rejects. Default: nothing. */
  readonly look?: () => Promise<void>;
  /** Reads whether a controller has sent its notices all the time since the last call. Never rejects. */
  readonly isTold: () => Promise<boolean>;
  readonly collector: Pick<Collector, "isPodGone" | "adopted">;
  readonly machine: Pick<OwnMachine, "prove">;
  /**
   * Whether objects without a row may be of the registry's past (registry-epoch): then they are left to
   * epoch-rows.ts. Default: they are not.
   */
  readonly isOfPast?: () => boolean;
  /** Pruned after each reconciliation. */
  readonly lost: Pick<LostAddresses, "prune">;
  readonly log: Log;
}

export interface ReconcilerOptions {
  /** Returns `garbageCollection.grace` as it is now. */
  readonly graceMs: () => number;
  /** Returns `garbageCollection.nodeLost` as it is now. */
  readonly nodeLostMs: () => number;
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** Whether the row is of a claim under way, at an object that is to be decided about when that was undone. */
function isOfUndecided({ isConfirmed }: Allocation, object: IpAllocation | undefined): boolean {
  return isConfirmed === false && object?.spec.state === "Quarantined";
}

type Confirmation = Extract<OrphanObjectAction, { readonly kind: "confirm" }>;

/** An unneeded object, as it was when that was first observed. */
interface Observation {
  readonly version: string;
  readonly sinceMs: number;
  /** Time that it has to last. */
  readonly pauseMs: number;
}

export class Reconciler {
  readonly #deps: ReconcilerDeps;
  readonly #options: ReconcilerOptions;
  readonly #closed = new AbortController();
  readonly #observations = new Map<string, Observation>();
  /** Opens when the journal was compared, since the start and since the last loss of rows. */
  #compared = new Latch();
  readonly #queue = new SerialQueue();
  readonly #worker: PeriodicWorker;
  /** When all objects are due. */
  #allDueMs = Number.NEGATIVE_INFINITY;
  /** When the controller's notices are. */
  #toldDueMs = Number.NEGATIVE_INFINITY;
  /** When single objects are due, by name. */
  readonly #dueMs = new Map<string, number>();
  /** Whether {@link reconciled} resolves at once. */
  isCompared = false;
  /** Whether it has begun to read all objects. */
  hasListed = false;
  /** Number of times that the journal has lost rows. */
  #losses = 0;
  /** As of the last reconciliation with all. */
  #relists = 0;

  constructor(deps: ReconcilerDeps, options: ReconcilerOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#worker = new PeriodicWorker({
      failure: "Reconciling the allocations of this node failed",
      isDue: () => this.isDue,
      work: async () => {
        await this.reconcileDue();
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
   * Resolves after the first reconciliation, and the first one since rows were lost: an ADD before that might give a
   * pod another address than it has. Rejects with the signal's reason, and when the reconciler is closed first.
   */
  reconciled(signal?: AbortSignal): Promise<void> {
    return this.#compared.wait(signal);
  }

  /** The journal lacks rows that it had. */
  rowsLost(): void {
    this.#losses++;
    if (this.isCompared) this.#compared = new Latch();
    this.isCompared = false;
    this.hasten("all");
  }

  /** Sentences: why the last reconciliation failed. */
  get problems(): readonly string[] {
    return this.#worker.problems;
  }

  /** Makes a reconciliation with these objects due, now. */
  hasten(noticed: NoticedAllocations): void {
    // Also while one is under way: its end puts off only objects that were due before it.
    if (noticed === "all") this.#allDueMs = Number.NEGATIVE_INFINITY;
    else for (const name of noticed) this.#dueMs.set(name, this.#options.nowMs());
    this.#worker.wake();
  }

  /** Reconciles with all objects now. Rejects when the API server or the journal does not answer. */
  reconcile(): Promise<void> {
    return this.#queue.run(() => this.#reconcileAll());
  }

  /** Reconciles the due ones. */
  reconcileDue(): Promise<void> {
    return this.#queue.run(async () => ((await this.#areAllDue()) ? this.#reconcileAll() : this.#reconcileSome()));
  }

  async close(): Promise<void> {
    const closed = new Error("The reconciler is closed");
    this.#closed.abort(closed);
    this.#compared.fail(closed);
    await this.#worker.close();
    await this.#queue.idle();
  }

  get isDue(): boolean {
    const nowMs = this.#options.nowMs();
    const isAny = nowMs >= this.#allDueMs || nowMs >= this.#toldDueMs || this.#deps.relists() > this.#relists;
    return isAny || this.#dueMs.values().some((dueMs) => nowMs >= dueMs);
  }

  async #areAllDue(): Promise<boolean> {
    const { nowMs } = this.#options;
    if (nowMs() >= this.#allDueMs || this.#deps.relists() > this.#relists) return true;
    if (nowMs() < this.#toldDueMs) return false;
    this.#toldDueMs = nowMs() + this.#spread(RECONCILE_INTERVAL_MS);
    return !(await this.#deps.isTold());
  }

  async #reconcileAll(): Promise<void> {
    const { registry, node, isTold, relists } = this.#deps;
    const { nowMs } = this.#options;
    this.#closed.signal.throwIfAborted();
    this.#relists = relists();
    const losses = this.#losses;
    // ADDs may wait for it. Rows that become due from here on are not in the list yet.
    const retryMs = nowMs() + (this.isCompared ? SWEEP_RETRY_MS : RECONCILE_TICK_MS);
    this.#allDueMs = retryMs;
    this.#dueMs.clear();
    // Records the current leader for later comparison: before the first list, and not again with each attempt.
    if (!this.hasListed) await isTold();
    this.hasListed = true;
    const rows = await Array.fromAsync(listRows(registry));
    const listed = await listNodeAllocations(this.#deps.api, node, this.#termsOf(RECONCILE_LIST_MS));
    const objects = new Map(listed.map((object) => [object.name, object]));
    for (const object of listed) registry.objects.observe(object);
    registry.objects.forgetRetained(objects);
    for (const name of this.#observations.keys()) if (!objects.has(name)) this.#observations.delete(name);
    await this.#compare(rows, objects);
    if (this.#allDueMs === retryMs) this.#allDueMs = nowMs() + this.#spread(RECONCILE_ALL_MS);
    this.#toldDueMs = Math.max(this.#toldDueMs, nowMs() + this.#spread(RECONCILE_INTERVAL_MS));
    if (losses === this.#losses) {
      this.isCompared = true;
      this.#compared.open();
    }
  }

  async #reconcileSome(): Promise<void> {
    const nowMs = this.#options.nowMs();
    const names = [...this.#dueMs].flatMap(([name, dueMs]) => (nowMs >= dueMs ? [name] : []));
    for (const name of names) this.#dueMs.delete(name);
    try {
      if (names.length > 0) await this.#reconcileNamed(names);
    } catch (error) {
      for (const name of names) this.#lookAgain(name, this.#options.nowMs() + SWEEP_RETRY_MS);
      throw error;
    }
  }

  async #reconcileNamed(names: readonly string[]): Promise<void> {
    const { registry } = this.#deps;
    const rows: Allocation[] = [];
    const objects = new Map<string, IpAllocation>();
    await inParallel(names, NOTICED_READS_AT_ONCE, async (name) => {
      const address = parseAllocationName(name);
      if (address === undefined) return;
      const object = await this.#read(name);
      if (object === undefined) this.#observations.delete(name);
      else {
        objects.set(name, object);
        registry.objects.observe(object);
      }
      const row = await registry.findAddress(address.addressSpace, address.ip);
      if (row !== undefined) rows.push(row);
    });
    await this.#compare(rows, objects);
  }

  /** Returns undefined if there is none, or for an undecodable one, which stays unchanged. */
  async #read(name: string): Promise<IpAllocation | undefined> {
    try {
      return await readAllocation(this.#deps.api, name, this.#termsOf(RECONCILE_READ_MS));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#deps.log.warn(
        { err: error, address: name },
        "Reading an allocation of this node failed; it stays as it is",
      );
      return undefined;
    }
  }

  /** ADDs may wait for the reconciliation. */
  #termsOf(attemptMs: number): CallTerms {
    const lane = this.isCompared ? "background" : "pod";
    return { lane, attemptMs, patienceMs: RECONCILE_PATIENCE_MS, signal: this.#closed.signal };
  }

  /** Addresses that this leaves undecided are looked up again by name. */
  async #compare(rows: readonly Allocation[], objects: ReadonlyMap<string, IpAllocation>): Promise<void> {
    const { registry, lost, node } = this.#deps;
    await this.#deps.look?.();
    // A row that is older than its object gets the address owner from it.
    const isOlder = (row: Allocation): boolean => isOlderThan(row, objects.get(nameOf(row)), node);
    await Promise.all(rows.filter(isOlder).map((row) => registry.objects.sync(row)));
    const known = new Set(rows.map(nameOf));
    for (const name of known) this.#observations.delete(name);
    const wanting = await inParallel(rows, ADOPTIONS_AT_ONCE, async (row) =>
      (await this.#needsPublishing(row, objects.get(nameOf(row)))) ? [row] : [],
    );
    const republished = wanting.flat();
    await Promise.all(republished.map((row) => registry.republish(row)));
    const isOfPast = this.#deps.isOfPast?.() === true;
    const orphans = [...objects.values()].filter(({ name }) => !known.has(name));
    const refused = await this.#handleOrphans(isOfPast ? [] : orphans);
    // Another node may have had an object and given it up since, which no event reports.
    const retryMs = this.#options.nowMs() + SWEEP_RETRY_MS;
    const claimed = rows.filter((row) => isOfUndecided(row, objects.get(nameOf(row)))).map(nameOf);
    const left = isOfPast ? orphans.map(({ name }) => name) : refused;
    for (const name of [...republished.map(nameOf), ...left, ...claimed]) this.#lookAgain(name, retryMs);
    for (const [name, { sinceMs, pauseMs }] of this.#observations)
      this.#lookAgain(name, Math.max(sinceMs + pauseMs, retryMs));
    await lost.prune(registry, (row) => {
      const object = objects.get(nameOf(row));
      return object !== undefined && isObjectOf(row, object, node);
    });
  }

  #spread(milliseconds: number): number {
    return milliseconds * (0.75 + 0.5 * this.#options.random());
  }

  /** By then, or as soon as it is due anyway. */
  #lookAgain(name: string, dueMs: number): void {
    this.#dueMs.set(name, Math.min(this.#dueMs.get(name) ?? dueMs, dueMs));
  }

  async #needsPublishing(row: Allocation, object: IpAllocation | undefined): Promise<boolean> {
    const { node, collector } = this.#deps;
    if (needsPublishing(row, object, node)) return true;
    return isReportedLost(row, object, node) && !(await collector.isPodGone(row));
  }

  /**
   * Several pods at once; the objects of one pod one by one, as the outcome of one matters to the next, and the
   * member's own first. Goes on with other pods after a read without an answer, and rejects at the end: the next
   * reconciliation, for which ADDs may wait, has the less to do. Returns the names of those that the API server did
   * not let the agent read.
   */
  async #handleOrphans(orphans: readonly IpAllocation[]): Promise<readonly string[]> {
    const refused: string[] = [];
    const unanswered: ApiUnavailable[] = [];
    const inOrder = orphans.toSorted((a, b) => compareRecords(foreignOf(a, 0), foreignOf(b, 0)));
    const byPod = Map.groupBy(inOrder, (object) => claimantOf(object, this.#deps.node)?.podUid ?? object.name);
    await inParallel([...byPod.values()], ADOPTIONS_AT_ONCE, async (group) => {
      for (const object of group) {
        try {
          await this.#handleOrphan(object);
        } catch (error) {
          // So many at once: the API server is out of reach.
          if (error instanceof ApiUnavailable && unanswered.push(error) < ADOPTIONS_AT_ONCE) return;
          if (!(error instanceof ConfigError || error instanceof ApiError)) throw error;
          const about = { err: error, address: object.name };
          this.#deps.log.warn(about, "Reading an allocation of this node failed; it stays as it is");
          // An object that cannot be decoded is not worth another try soon.
          if (error instanceof ApiError) refused.push(object.name);
        }
      }
    });
    if (unanswered.length > 0) throw unanswered[0];
    return refused;
  }

  async #handleOrphan(seen: IpAllocation): Promise<void> {
    if ((await this.#decide(seen)).kind === "leave") {
      // A claim may have written a row meanwhile, and be undone.
      if (this.#observations.delete(seen.name)) this.#lookAgain(seen.name, this.#options.nowMs() + SWEEP_RETRY_MS);
      return;
    }
    const object = await readAllocation(this.#deps.api, seen.name, this.#termsOf(RECONCILE_READ_MS));
    if (object === undefined) return;
    const action = await this.#decide(object);
    if (action.kind === "adopt") return this.#adopt(action.adoption);
    const { graceMs, nodeLostMs } = this.#options;
    if (action.kind === "confirm") return this.#confirm(object, action);
    if (action.kind === "probe" && this.#isObservedLongEnough(object, nodeLostMs()))
      return this.#adopt(action.adoption);
    if (action.kind !== "release" || !this.#isObservedLongEnough(object, graceMs())) return;
    const row: PodRow = { ...action.adoption, state: "Bound", containerId: UNKNOWN_CONTAINER };
    if (action.ifPodGone && !(await this.#deps.collector.isPodGone(row))) return;
    this.#observations.delete(object.name);
    await this.#release(action.adoption);
  }

  /**
   * The pod keeps the address; without that pod it is released: this node was taken for lost (node-lost), or the pod
   * shares it (retention).
   */
  async #confirm(object: IpAllocation, { adoption, ended }: Confirmation): Promise<void> {
    const row: PodRow = { ...adoption, containerId: UNKNOWN_CONTAINER };
    if (!(await this.#deps.collector.isPodGone(row))) return this.#adopt(adoption);
    if (!this.#isObservedLongEnough(object, this.#options.graceMs())) return;
    this.#observations.delete(object.name);
    await this.#release(ended);
  }

  async #decide(object: IpAllocation): Promise<OrphanObjectAction> {
    const { registry, node } = this.#deps;
    const { ip, addressSpace } = object.spec;
    if ((await registry.findAddress(addressSpace, ip)) !== undefined) return { kind: "leave" };
    const claimant = claimantOf(object, node);
    const machine = claimant?.machine && (await this.#deps.machine.prove(claimant.machine, this.#closed.signal));
    const ownRows = claimant === undefined ? [] : await registry.findOwner(claimant.podUid);
    return decideOrphanObject({ object, node, machine, ownRows, nowMs: this.#options.nowMs() });
  }

  async #adopt(adoption: Adoption): Promise<void> {
    const row = await this.#deps.registry.adopt(adoption);
    if (row === undefined) return;
    this.#log(row, "Adopted an allocation of this node that the journal lacked");
    this.#deps.collector.adopted(row);
  }

  /** Adopts the object as Cooling; it is deleted when the row has cooled. */
  async #release(adoption: Adoption): Promise<void> {
    const row = await this.#deps.registry.adopt(adoption);
    if (row !== undefined) this.#log(row, "Released an allocation of this node that no NIC has");
  }

  #log({ ip, pool, state, namespace, pod, owner, ifName }: Allocation, text: string): void {
    this.#deps.log.info({ address: formatIp(ip), pool, state, namespace, pod, owner, ifName }, text);
  }

  /** Returns whether the same version was observed so long ago; if not, observes it now. */
  #isObservedLongEnough({ name, uid, resourceVersion }: IpAllocation, pauseMs: number): boolean {
    const { nowMs } = this.#options;
    const version = `${uid}/${resourceVersion}`;
    const before = this.#observations.get(name);
    if (before?.version === version) return nowMs() - before.sinceMs >= pauseMs;
    this.#observations.set(name, { version, sinceMs: nowMs(), pauseMs });
    return false;
  }
}
