/**
 * Claims the addresses of pods that were bound to this node while the runtime still sets up their sandboxes, so that
 * their ADD finds them in the journal (prefetch, docs/develop/prefetch.md). plan-prefetch.ts decides which pods are
 * prefetched. A failed claim never makes a pod fail: its ADD claims.
 */
import { type AnnouncedNic, decidePod, ownerOfPod, planGroups } from "../../../ipam/plan-prefetch.ts";
import { type Allocation, UNATTACHED_MS } from "../../../registry/registry.ts";
import type { Pod } from "../../../resources/pod.ts";
import { type ClaimAheadDeps, claimAhead } from "./claim-ahead.ts";
import { type KnownPod, KnownPods, PrefetchJob } from "./known-pods.ts";

/**
 * Most pods whose addresses are claimed ahead of their ADD at once. A queued claim costs nothing; an ADD that comes
 * first claims by itself.
 */
export const PREFETCHES_AT_ONCE = 16;

interface PrefetcherOptions {
  /** Returns all NICs of a pod, of any plugin. Throws ConfigError when an annotation of the pod is wrong. */
  readonly nics: (pod: Pod) => readonly AnnouncedNic[];
  /**
   * Resolves when definitions and pools are known and the journal has the addresses of this node's pods; nothing is
   * claimed before. If it rejects, nothing is claimed at all.
   */
  readonly ready: Promise<unknown>;
}

/** Counts of NICs. */
export interface PrefetchStats {
  /** A claim ahead was planned. */
  readonly wanted: number;
  /** Claimed ahead. */
  readonly claimed: number;
  /** Claimed ahead by an agent that ran before this one. */
  readonly found: number;
  /** ADDs that came for the first time to a NIC of a pod without a sandbox. */
  readonly adds: number;
  /** Number of these ADDs that used the address that was claimed ahead. */
  readonly used: number;
  /** Number of these ADDs that came while the claim was running, and waited for it. */
  readonly waited: number;
  /** Those of them that came before the watch had shown the pod, or the prefetcher was ready: the ADD claims. */
  readonly unseen: number;
  /** Not claimed: an ADD of the pod came before the claim had begun. The ADD claims. */
  readonly late: number;
  /** Released: the address did not fit the ADD's request. */
  readonly discarded: number;
  /** Released: the pod was deleted without an ADD. */
  readonly returned: number;
  /** Released: the ADD did not come within UNATTACHED_MS. */
  readonly timedOut: number;
  /** Not claimed: the pod was deleted first, or its NIC was attached before this agent started. */
  readonly withdrawn: number;
  /** Not claimed: no pool fits or has a free address, a limit is near, no answer came: the ADD tells the pod. */
  readonly failed: number;
}

type Counters = { -readonly [K in keyof PrefetchStats]: number };

export class Prefetcher {
  readonly #deps: ClaimAheadDeps;
  readonly #nics: PrefetcherOptions["nics"];
  readonly #pods = new KnownPods();
  /** In the order in which they start. */
  readonly #queue = new Map<PrefetchJob, KnownPod>();
  readonly #running = new Set<Promise<void>>();
  readonly #stats: Counters = {
    wanted: 0,
    claimed: 0,
    found: 0,
    adds: 0,
    used: 0,
    waited: 0,
    unseen: 0,
    late: 0,
    discarded: 0,
    returned: 0,
    timedOut: 0,
    withdrawn: 0,
    failed: 0,
  };
  #claiming = 0;
  #isReady = false;
  #isClosed = false;

  constructor(deps: ClaimAheadDeps, { nics, ready }: PrefetcherOptions) {
    this.#deps = deps;
    this.#nics = nics;
    const report = (error: unknown): void => deps.log.debug({ err: error }, "Addresses are not claimed ahead of ADDs");
    ready.then(() => this.#start(), report);
  }

  /** A pod of this node is new or has changed. */
  podChanged(pod: Pod): void {
    const owner = ownerOfPod(pod);
    if (owner === undefined || this.#isClosed) return;
    const key = `${pod.namespace}/${pod.name}`;
    const predecessor = this.#pods.findPredecessor(owner, key);
    if (predecessor !== undefined) this.#remove(predecessor);
    const known = this.#pods.addWatched(owner, key);
    const decision = decidePod(pod, this.#deps.node.name);
    known.pending = undefined;
    if (decision.kind === "expected") this.#plan(owner, known, pod);
    else if (decision.kind === "left") this.#skip(known);
    else this.#takeBack(known, decision.reason);
  }

  /** The pod's object was deleted. */
  podGone(pod: Pod): void {
    const owner = ownerOfPod(pod);
    if (owner !== undefined) this.#remove(owner);
  }

  /**
   * Called by the ADD of a NIC before anything else. Waits for a running claim for the NIC, however it ends;
   * withdraws one that has not begun. From then on nothing is claimed ahead for the NIC. Rejects only with the
   * signal's reason.
   */
  async waitForClaim(owner: string, ifName: string, signal: AbortSignal): Promise<void> {
    if (this.#isClosed) return;
    const known = this.#pods.find(owner) ?? this.#pods.addUnseen(owner);
    const isFirst = !known.attended.has(ifName) && !known.isSkipped;
    known.attended.add(ifName);
    if (isFirst) this.#stats.adds++;
    const job = [...known.jobs].find((each) => each.includes(ifName));
    if (job === undefined) {
      if (isFirst && !known.isPlanned) this.#stats.unseen++;
      return;
    }
    if (this.#queue.has(job)) {
      this.#withdraw(new Set([job]), "late");
      return;
    }
    if (isFirst) this.#stats.waited++;
    await job.ended(signal);
  }

  /** Returns the addresses claimed ahead for the NIC that are neither used nor released. */
  claimedFor(owner: string, ifName: string): readonly Allocation[] {
    const known = this.#pods.find(owner);
    if (known === undefined || known.held.size === 0) return [];
    this.#forgetOld(known);
    return known.held.get(ifName) ?? [];
  }

  /** The ADD attached the addresses claimed ahead. */
  used(owner: string, ifName: string): void {
    if (this.#pods.find(owner)?.held.delete(ifName)) this.#stats.used++;
  }

  /** Releases, without a cooldown, addresses claimed ahead that do not fit the ADD's request. */
  async discard(owner: string, ifName: string): Promise<void> {
    const held = this.#pods.find(owner)?.held;
    const rows = held?.get(ifName);
    if (rows === undefined) return;
    await this.#deps.inventory.registry.undo(rows);
    // Otherwise the next ADD would find them and take them for its own.
    if (held?.delete(ifName)) this.#stats.discarded++;
  }

  stats(): PrefetchStats {
    for (const known of this.#pods.all()) this.#forgetOld(known);
    return { ...this.#stats };
  }

  /** Takes back running claims; addresses in the journal stay for the next agent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { jobs } of this.#pods.all()) {
      this.#withdraw(jobs, "withdrawn");
      for (const job of jobs) job.abort("the agent stops");
    }
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #start(): void {
    if (this.#isClosed) return;
    this.#isReady = true;
    for (const known of this.#pods.all()) {
      const { pending } = known;
      known.pending = undefined;
      const owner = pending && ownerOfPod(pending);
      if (owner !== undefined) this.#plan(owner, known, pending as Pod);
    }
  }

  #remove(owner: string): void {
    const known = this.#pods.remove(owner);
    if (known !== undefined) this.#takeBack(known, "the pod is gone");
  }

  /** The pod runs already, or has no NIC of this plugin. */
  #skip(known: KnownPod): void {
    known.isSkipped = true;
    this.#withdraw(known.jobs, "withdrawn");
  }

  #plan(owner: string, known: KnownPod, pod: Pod): void {
    if (known.isPlanned) return;
    if (!this.#isReady) {
      known.pending = pod;
      return;
    }
    known.isPlanned = true;
    for (const nics of this.#groupsOf(pod)) {
      if (nics.some(({ ifName }) => known.attended.has(ifName))) continue;
      const job = new PrefetchJob(owner, pod, nics);
      known.jobs.add(job);
      this.#queue.set(job, known);
      this.#stats.wanted += nics.length;
    }
    this.#startQueued();
  }

  /** An error of the pod's annotations is reported by its ADD, in the pod's events. */
  #groupsOf(pod: Pod): ReturnType<typeof planGroups> {
    try {
      return planGroups(pod, this.#nics(pod));
    } catch (error) {
      const about = { err: error, namespace: pod.namespace, pod: pod.name };
      this.#deps.log.debug(about, "Addresses of a pod are left to its ADD");
      return [];
    }
  }

  #startQueued(): void {
    while (this.#claiming < PREFETCHES_AT_ONCE) {
      const [next] = this.#queue;
      if (next === undefined) return;
      const [job, known] = next;
      this.#queue.delete(job);
      this.#claiming++;
      const claiming = this.#claim(job, known).finally(() => {
        this.#claiming--;
        this.#end(job, known);
        this.#startQueued();
      });
      this.#track(claiming);
    }
  }

  async #claim(job: PrefetchJob, known: KnownPod): Promise<void> {
    const { owner, pod, nics } = job;
    try {
      const request = { owner, pod, nics, ahead: this.#aheadOf(pod.namespace) };
      const { claimed, found, attached } = await claimAhead(this.#deps, request, job.unwanted);
      this.#stats.claimed += claimed.size;
      this.#stats.found += found.size;
      this.#stats.withdrawn += attached.length;
      for (const [ifName, rows] of [...claimed, ...found]) known.held.set(ifName, rows);
      if (job.unwanted.aborted) this.#takeBack(known, "");
    } catch (error) {
      const { namespace, name } = pod;
      this.#stats[job.unwanted.aborted ? "withdrawn" : "failed"] += nics.length;
      this.#deps.log.debug({ err: error, namespace, pod: name }, "Claiming addresses ahead of an ADD failed");
    }
  }

  /** Returns how many NICs of the namespace's pods have addresses ahead of their ADD, or are about to. */
  #aheadOf(namespace: string): number {
    const own = this.#pods.all().filter(({ key }) => key?.startsWith(`${namespace}/`));
    const claiming = own.flatMap(({ jobs }) => [...jobs].filter((job) => !this.#queue.has(job)));
    return own.reduce((sum, { held }) => sum + held.size, claiming.length);
  }

  /** Removes those of the jobs that have not begun. */
  #withdraw(jobs: ReadonlySet<PrefetchJob>, counter: "withdrawn" | "late"): void {
    for (const job of jobs) {
      const known = this.#queue.get(job);
      if (known === undefined) continue;
      this.#queue.delete(job);
      this.#end(job, known);
      this.#stats[counter] += job.nics.length;
    }
  }

  #end(job: PrefetchJob, known: KnownPod): void {
    known.jobs.delete(job);
    job.end();
  }

  /**
   * No ADD will come: withdraws queued jobs, aborts running ones, releases claimed addresses. Addresses that an ADD
   * attached meanwhile stay: their rows have changed.
   */
  #takeBack(known: KnownPod, reason: string): void {
    known.isPlanned = true;
    this.#withdraw(known.jobs, "withdrawn");
    for (const job of known.jobs) job.abort(reason);
    const rows = [...known.held.values()].flat();
    this.#stats.returned += known.held.size;
    known.held.clear();
    if (rows.length === 0) return;
    const { inventory, log } = this.#deps;
    const report = (error: unknown): void =>
      log.warn({ err: error }, `Releasing addresses claimed ahead failed; they are released after ${UNATTACHED_MS} ms`);
    this.#track(inventory.registry.undo(rows).catch(report));
  }

  /** The agent's maintenance has released such rows. */
  #forgetOld({ held }: KnownPod): void {
    const oldestMs = this.#deps.clock.nowMs() - UNATTACHED_MS;
    for (const [ifName, rows] of held) {
      if (rows.every(({ sinceMs }) => sinceMs >= oldestMs)) continue;
      held.delete(ifName);
      this.#stats.timedOut++;
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }
}
