/**
 * Collects leaked addresses: those of pods that are gone or finished and for which no DEL has come (late-del,
 * static-pods, leak).
 *
 * A sweep goes through this node's journal in pages. Rows whose pod the watch shows alive are skipped. For the others
 * the watch is only a reason to ask the API server; host/ipam/leak.ts decides on its answer. A pod that the watch
 * reports as finished or deleted is checked without waiting for the sweep. Other nodes' addresses are never collected
 * (node-lost): the journal has none.
 */
import {
  confirmAfterMs,
  decideLeak,
  isFinished,
  isOrphan,
  isOwner,
  type LeakDecision,
  mayLeak,
  type NetnsStatus,
  type PodStatus,
  type PodsOfRows,
  podFacts,
} from "../../ipam/leak.ts";
import { mayBeShared } from "../../ipam/retention.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { SerialQueue } from "../../lib/serial.ts";
import { formatIp } from "../../net/ip.ts";
import { type Journal, UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { listRows } from "../../registry/list-rows.ts";
import { type Allocation, type Cooldowns, cooldownOf } from "../../registry/registry.ts";
import type { Pod } from "../../resources/pod.ts";
import { KERNEL_NICS, type NicAccess } from "../fences/orphan-nics.ts";
import { type PodReaderDeps, podKey, readPodStatus, readPodStatuses } from "../liveness/live-status.ts";
import type { Audit } from "../log/audit.ts";

/** Shortest time between a sweep without an answer and the next: milliseconds. */
export const SWEEP_RETRY_MS = 10_000;

/** Checks of a sweep without an answer after which it ends: without a server each one takes long. */
export const SWEEP_FAILURES = 3;

/** Most network namespaces that a problem names. */
const MAX_NAMED_NETNS = 8;

/**
 * Interval at which the collector checks whether a sweep is due: milliseconds. Changed settings of
 * `garbageCollection` apply from the next check on.
 */
export const COLLECTOR_TICK_MS = 1_000;

export interface CollectorSettings {
  /** `garbageCollection.interval` */
  readonly intervalMs: number;
  /** `garbageCollection.grace` */
  readonly graceMs: number;
  readonly cooldowns: Cooldowns;
}

/** The watch of this node's pods: a hint, never a reason to collect an address. */
interface WatchedPods {
  /** False before the first list and after a long silence; nothing is collected then. */
  readonly isSynced: () => boolean;
  /** Returns the pod by `namespace/name`. */
  readonly find: (key: string) => Pod | undefined;
}

interface CollectorDeps {
  readonly api: KubeApi;
  /** This node's name. */
  readonly node: string;
  readonly registry: Pick<Journal, "list" | "findOwner" | "collect">;
  readonly pods: WatchedPods;
  /** Default: the kernel's. */
  readonly nics?: Pick<NicAccess, "readNetnsStatus" | "findNetns"> | undefined;
  /** Returns the paths of the network namespaces of all attachments in the journal. Default: none. */
  readonly knownNetns?: (() => Promise<readonly string[]>) | undefined;
  /** Takes an orphan's address off its NIC; resolves with whether it is gone. If undefined, nothing is fenced. */
  readonly fence?: ((row: Allocation) => Promise<boolean>) | undefined;
  /** Returns whether the NIC's ADD is under way or was answered a moment ago. Default: never. */
  readonly isAttaching?: ((nic: Pick<Allocation, "netns" | "ifName" | "ip">) => boolean) | undefined;
  readonly log: Log;
  readonly audit: Audit;
}

interface CollectorOptions {
  /** Returns the settings that apply now; called at every check. */
  readonly settings: () => CollectorSettings;
  /** The machine's monotonic clock. */
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** The part of a row that is needed to ask for its pod. */
export type PodRow = Pick<
  Allocation,
  | "state"
  | "owner"
  | "containerId"
  | "namespace"
  | "pod"
  | "netns"
  | "netnsCookie"
  | "ifName"
  | "pool"
  | "space"
  | "ip"
  | "workload"
>;

/**
 * A pod whose addresses are to be checked: reported by the watch as finished, with the status, or as deleted,
 * without; or named by a row taken in.
 */
interface Reported {
  /** Its UID, and its configuration hash if it has one. */
  readonly owners: ReadonlySet<string>;
  readonly status: PodStatus | undefined;
}

/** A row as it was when its pod was first missed. */
interface Observation {
  readonly version: number;
  readonly pool: string;
  readonly sinceMs: number;
}

export class Collector {
  readonly #deps: CollectorDeps;
  readonly #options: CollectorOptions;
  readonly #closed = new AbortController();
  readonly #reader: PodReaderDeps;
  readonly #worker: PeriodicWorker;
  /** Two sweeps at once would count one observation as two. */
  readonly #queue = new SerialQueue();
  /** By UID or owner: a pod is checked once, however often it is reported meanwhile. */
  readonly #reported = new Map<string, Reported>();
  /** By {@link keyOf}; in memory only: an agent that restarts observes anew. */
  readonly #observations = new Map<string, Observation>();
  /** By {@link keyOf}: sentences about addresses in namespaces that may be the row's. */
  readonly #unproven = new Map<string, string>();
  #isCheckQueued = false;
  /** When the last sweep began. */
  #sweptMs = Number.NEGATIVE_INFINITY;
  /** The last sweep has ended with all answers. */
  #hasSwept = false;
  #jitter = 1;
  /** Number of addresses collected since the start. */
  collected = 0;

  constructor(deps: CollectorDeps, options: CollectorOptions) {
    this.#deps = deps;
    this.#options = options;
    const { signal } = this.#closed;
    this.#reader = { ...deps, signal };
    this.#worker = new PeriodicWorker({
      failure: "Collecting leaked addresses failed",
      isDue: () => this.#reported.size > 0 || this.#isSweepDue(),
      work: async () => {
        await this.#runDue();
        return COLLECTOR_TICK_MS;
      },
      firstMs: COLLECTOR_TICK_MS,
      checkMs: COLLECTOR_TICK_MS,
      retryMs: () => COLLECTOR_TICK_MS,
      signal,
      log: deps.log,
    });
  }

  /** Number of addresses whose pod was missed once. */
  get candidates(): number {
    return this.#observations.size;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return [...this.#unproven.values()];
  }

  /** A report of the watch. Returns at once; the check follows in the background. */
  podChanged(pod: Pod): void {
    if (isFinished(pod)) this.#report(pod, { kind: "present", pod: podFacts(pod) });
  }

  /** A report of the watch. Returns at once; the check follows in the background. */
  podDeleted(pod: Pod): void {
    this.#report(pod, undefined);
  }

  /**
   * The journal has taken the row in from the API server: its pod may be gone, with no report to come. Returns at
   * once; the check follows in the background.
   */
  adopted({ owner }: Allocation): void {
    this.#checkLater(owner, { owners: new Set([owner]), status: undefined });
  }

  /** Goes through the journal, unless the watch is not synced. Rejects without the API server. */
  sweep(): Promise<void> {
    return this.#queue.run(() => this.#sweep());
  }

  /**
   * Returns whether the row's pod is gone or finished, as the API server says now; false when that is unknown. ADDs
   * may wait for it. A CNI GC only nominates rows (late-del).
   */
  async isPodGone(row: PodRow): Promise<boolean> {
    return (await this.#decideNow(row)).kind === "collect";
  }

  /** The same before the address is released: then no NIC of the pod answers for it any more. */
  async letGo(row: Allocation): Promise<boolean> {
    const leak = await this.#decideNow(row);
    if (leak.kind !== "collect") return false;
    try {
      return leak.reason === "finished" || (await this.#silence(row));
    } catch (error) {
      this.#deps.log.info({ err: error, address: formatIp(row.ip) }, "Fencing an address failed; it stays");
      return false;
    }
  }

  async #decideNow(row: PodRow): Promise<LeakDecision> {
    if (!mayLeak(row)) return { kind: "keep" };
    try {
      const reader = { ...this.#reader, lane: "pod" } as const;
      return await this.#decide(row, await readPodStatus(reader, row), Number.NEGATIVE_INFINITY);
    } catch (error) {
      this.#deps.log.info({ err: error, address: formatIp(row.ip) }, "Reading the pod of an address failed; it stays");
      return { kind: "wait" };
    }
  }

  /** A main plugin may still be at work on the NIC of a pod that is gone. Returns whether the NIC has no address. */
  async #silence(row: Allocation): Promise<boolean> {
    const { netns } = await this.#readNetns(row);
    if (netns !== "there") return netns !== "inUse";
    await this.#deps.fence?.(row);
    return (await this.#readNetns(row)).netns !== "inUse";
  }

  /**
   * Collects the address of an orphan at once, so that the workload's next pod gets it, but not before it is off the
   * orphan's NIC (retention); one that was never attached is on none. Returns the row as Cooling; undefined when the
   * row's pod is no orphan or its NIC may still have the address. Rejects when the API server does not answer, or the
   * kernel refuses to fence.
   */
  async endOrphan(row: Allocation): Promise<Allocation | undefined> {
    const { fence } = this.#deps;
    const { workload } = row;
    if (fence === undefined || workload === undefined || !mayLeak(row)) return undefined;
    if (!isOrphan(row, await readPodStatus(this.#reader, row))) return undefined;
    const isSilent = row.containerId === "" || (await fence(row));
    return isSilent ? this.#collect(row, "gone") : undefined;
  }

  /** Reads the rows' pods from the API server now. Rejects when it does not answer. */
  readPodsOf(rows: readonly PodRow[]): Promise<PodsOfRows> {
    return readPodStatuses(this.#reader, rows);
  }

  /** Resolves when no sweep and no check is under way. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error("The collector is closed"));
    await this.#worker.close();
    await this.#queue.idle();
  }

  /** Repeats the checks that failed, and sweeps when that is due. */
  async #runDue(): Promise<void> {
    try {
      if (this.#reported.size > 0) await this.#queue.run(() => this.#checkReported());
    } finally {
      if (this.#isSweepDue()) await this.sweep();
    }
  }

  /**
   * A sweep is due after the interval, when the last one failed, and when a pod has been missed for long enough; the
   * latter two not again and again.
   */
  #isSweepDue(): boolean {
    const { settings, nowMs } = this.#options;
    const { intervalMs } = settings();
    const nextMs = this.#hasSwept ? this.#sweptMs + intervalMs * this.#jitter : Number.NEGATIVE_INFINITY;
    const dueMs = Math.min(nextMs, this.#observedDueMs());
    const earliestMs = this.#sweptMs + Math.min(intervalMs, SWEEP_RETRY_MS);
    return nowMs() >= Math.max(dueMs, earliestMs);
  }

  async #sweep(): Promise<void> {
    const { pods, registry } = this.#deps;
    const { nowMs, random } = this.#options;
    this.#closed.signal.throwIfAborted();
    if (!pods.isSynced()) return;
    this.#sweptMs = nowMs();
    this.#hasSwept = false;
    this.#jitter = 0.9 + 0.2 * random();
    const suspects: Allocation[] = [];
    for await (const row of listRows(registry)) {
      if (mayLeak(row) && !this.#isWatchedAlive(row)) suspects.push(row);
    }
    this.#forgetOthers(suspects);
    const statusOf = await this.readPodsOf(suspects);
    const failures: unknown[] = [];
    for (const row of suspects) {
      try {
        await this.#check(row, statusOf(row));
      } catch (error) {
        // One question without an answer does not delay the others.
        if (failures.push(error) === SWEEP_FAILURES) break;
      }
    }
    if (failures.length > 0) throw failures[0];
    this.#hasSwept = true;
  }

  /** The watch will report it if such a pod has gone. */
  #isWatchedAlive({ owner, namespace, pod }: Allocation): boolean {
    const known = this.#deps.pods.find(podKey({ namespace, pod }));
    return known !== undefined && isOwner(owner, podFacts(known)) && !isFinished(known);
  }

  #report(pod: Pod, status: PodStatus | undefined): void {
    const { uid } = pod;
    if (uid === undefined) return;
    const { configHash = uid } = podFacts(pod);
    this.#checkLater(uid, { owners: new Set([uid, configHash]), status });
  }

  #checkLater(key: string, reported: Reported): void {
    if (this.#closed.signal.aborted) return;
    this.#reported.set(key, reported);
    if (this.#isCheckQueued) return;
    this.#isCheckQueued = true;
    const check = (): Promise<void> => {
      this.#isCheckQueued = false;
      return this.#checkReported();
    };
    // The next tick retries, and logs a failure that persists.
    this.#queue.run(check).catch(() => {});
  }

  /**
   * Most of the pods have had their DEL by now and have no row; then the API server is not asked. Pods whose check
   * failed stay reported, and those with a NIC that is being attached.
   */
  async #checkReported(): Promise<void> {
    if (!this.#deps.pods.isSynced()) return;
    const failures: unknown[] = [];
    for (const [key, reported] of [...this.#reported]) {
      const { owners, status } = reported;
      try {
        let isDone = true;
        for (const owner of owners) if (!(await this.#checkOwner(owner, status))) isDone = false;
        if (isDone && this.#reported.get(key) === reported) this.#reported.delete(key);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Returns false if a NIC is being attached, so that the next tick has to check again. */
  async #checkOwner(owner: string, status: PodStatus | undefined): Promise<boolean> {
    const { registry, isAttaching = () => false } = this.#deps;
    const isSuspect = (row: Allocation): boolean =>
      mayLeak(row) && (status !== undefined || !this.#isWatchedAlive(row));
    const rows = (await registry.findOwner(owner)).filter(isSuspect);
    let isDone = true;
    for (const row of rows) {
      const isOpen = isAttaching(row);
      const cooling = await this.#check(row, status ?? (await readPodStatus(this.#reader, row)));
      if (isOpen && cooling === undefined) isDone = false;
    }
    return isDone;
  }

  /**
   * Decides by the status that was read of the row's pod, and acts; before it collects the address it reads the pod
   * once more. Returns the row as Cooling; undefined when the address stays. Rejects when the API server does not
   * answer, or the kernel refuses to fence an orphan.
   */
  async #check(row: Allocation, pod: PodStatus): Promise<Allocation | undefined> {
    this.#closed.signal.throwIfAborted();
    if (isOrphan(row, pod)) {
      const cooling = await this.endOrphan(row);
      if (cooling !== undefined) return cooling;
    }
    const first = await this.#decide(row, pod, this.#observedAtMs(row));
    this.#note(row, first);
    if (first.kind !== "collect") return undefined;
    const again = await this.#decide(row, await readPodStatus(this.#reader, row), this.#observedAtMs(row));
    this.#note(row, again);
    if (again.kind !== "collect" || (again.reason === "gone" && !(await this.#silence(row)))) return undefined;
    return this.#collect(row, again.reason);
  }

  async #decide(row: PodRow, pod: PodStatus, observedAtMs: number | undefined): Promise<LeakDecision> {
    const { netns, isAbsent } = await this.#readNetns(row);
    const isHidden = mayBeShared(row.workload) && !isAbsent;
    const nowMs = this.#options.nowMs();
    return decideLeak({ row, pod, netns, isHidden, observedAtMs, nowMs, confirmAfterMs: this.#graceMs(row.pool) });
  }

  /**
   * The container of an address that was taken in from the API server is unknown: its namespace is looked for. Another
   * one with that address is none of it. `isAbsent`: the runtime has no record of the attachment.
   */
  async #readNetns(row: PodRow): Promise<{ netns: NetnsStatus; isAbsent: boolean }> {
    const { nics = KERNEL_NICS, knownNetns = async () => [] } = this.#deps;
    const status = await nics.readNetnsStatus(row);
    if (status !== "unknown" || row.containerId !== UNKNOWN_CONTAINER) return { netns: status, isAbsent: false };
    const found = nics.findNetns(row, await knownNetns());
    this.#noteCandidates(row, found.kind === "unknown" ? found.candidates : []);
    if (found.kind !== "proven") return { netns: "unknown", isAbsent: found.kind === "absent" };
    return { netns: await nics.readNetnsStatus({ ...row, ...found }), isAbsent: false };
  }

  #noteCandidates(row: PodRow, candidates: readonly string[]): void {
    const { ip, namespace, pod, owner, ifName } = row;
    if (candidates.length === 0) return void this.#unproven.delete(keyOf(row));
    const text = `Address ${formatIp(ip)} of pod ${namespace}/${pod} (UID ${owner}), which is deleted, is in network namespaces that are not known to be the pod's, and stays there: ${candidates.slice(0, MAX_NAMED_NETNS).join(", ")}; delete the pod's sandbox if it is one of them`;
    if (this.#unproven.get(keyOf(row)) !== text)
      this.#deps.log.warn({ address: formatIp(ip), interface: ifName, candidates }, text);
    this.#unproven.set(keyOf(row), text);
  }

  async #collect(row: Allocation, reason: "finished" | "gone"): Promise<Allocation | undefined> {
    const { registry, audit } = this.#deps;
    const cooling = await registry.collect(row);
    this.#observations.delete(keyOf(row));
    this.#unproven.delete(keyOf(row));
    if (cooling === undefined) return undefined;
    this.collected++;
    audit.record({ audit: "COLLECT", allocations: [row], rule: `its pod is ${reason} and no DEL came` });
    return cooling;
  }

  /** Undefined also when the row was written since: the writer knew that the address is wanted. */
  #observedAtMs(row: Allocation): number | undefined {
    const observed = this.#observations.get(keyOf(row));
    return observed?.version === row.version ? observed.sinceMs : undefined;
  }

  #note(row: Allocation, { kind }: LeakDecision): void {
    if (kind === "wait") return;
    if (kind === "keep") this.#observations.delete(keyOf(row));
    if (kind !== "observe" || this.#observedAtMs(row) !== undefined) return;
    const { version, pool } = row;
    this.#observations.set(keyOf(row), { version, pool, sinceMs: this.#options.nowMs() });
  }

  /** Other rows have been seen alive since, or are not Bound any more. */
  #forgetOthers(rows: readonly Allocation[]): void {
    const keys = new Set(rows.map(keyOf));
    for (const known of [this.#observations, this.#unproven])
      for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
  }

  /** When the first of the missed pods has been missed for long enough; infinite without any. */
  #observedDueMs(): number {
    const due = [...this.#observations.values()].map(({ sinceMs, pool }) => sinceMs + this.#graceMs(pool));
    return Math.min(...due, Number.POSITIVE_INFINITY);
  }

  #graceMs(pool: string): number {
    const { graceMs, cooldowns } = this.#options.settings();
    return confirmAfterMs(graceMs, cooldownOf(pool, cooldowns));
  }
}

function keyOf({ space, ip }: Pick<Allocation, "space" | "ip">): string {
  return `${formatIp(ip)}/${space}`;
}
