/**
 * Claims the addresses of pods that were bound to this node while the runtime still sets up their sandboxes, so that
 * their ADD finds them in the journal (allocation rule 7, docs/prefetch.md).
 * Told of pods by the watch of this node's pods, of ADDs by host/agent/ipam/add.ts. Who is prefetched is plan-prefetch.ts.
 * Effects: writes to the registry, in the background. Nothing here makes a pod fail: what cannot be claimed is left to the ADD.
 */
import { type AnnouncedNic, judgePod, ownerOfPod, type PrefetchGroup, planGroups } from "../../ipam/plan-prefetch.ts";
import type { Log } from "../../lib/log.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Pod } from "../../resources/pod.ts";
import { type AheadTools, claimAhead } from "./claim-ahead.ts";
import { PrefetchJob } from "./job.ts";
import { type KnownPod, KnownPods } from "./known-pods.ts";
import { createCounters, type PrefetchStats } from "./stats.ts";

/** Addresses claimed for a NIC that was never attached are freed after this: milliseconds (allocation rule 17). @limit */
export const UNATTACHED_MS = 120_000;

/** Most pods whose addresses are claimed ahead of their ADD at once. What waits for its turn costs nothing; an ADD that comes first claims by itself. @limit */
export const PREFETCHES_AT_ONCE = 16;

export interface PrefetchTools extends AheadTools {
  readonly nodeName: string;
  /** All NICs of a pod, of any plugin. Throws ConfigError when an annotation of the pod is wrong. */
  readonly nics: (pod: Pod) => readonly AnnouncedNic[];
  /**
   * Nothing is planned or claimed before: definitions and pools are known, and the journal has what pods of this node have. Rejects:
   * nothing is claimed at all.
   */
  readonly mayBegin: Promise<unknown>;
  readonly log: Log;
}

export interface Prefetcher {
  /** A pod of this node is new or has changed. */
  podChanged(pod: Pod): void;
  /** Its object is gone. */
  podGone(pod: Pod): void;
  /**
   * To be called by the ADD of a NIC before anything else. Waits for a claim under way for the NIC, however it ends; one that has not
   * begun is withdrawn. From then on nothing is claimed ahead for it. Rejects only with the signal's reason.
   */
  settle(owner: string, ifName: string, signal: AbortSignal): Promise<void>;
  /** What was claimed ahead for the NIC and neither used nor given back. */
  claimedFor(owner: string, ifName: string): readonly Allocation[];
  /** The ADD attached what was claimed ahead. */
  used(owner: string, ifName: string): void;
  /** What was claimed ahead does not fit what the ADD asks for: goes back without a cooldown. */
  discard(owner: string, ifName: string): Promise<void>;
  stats(): PrefetchStats;
  /** Claims under way are taken back; what is in the journal stays for the next agent. */
  close(): Promise<void>;
}

export function createPrefetcher(tools: PrefetchTools): Prefetcher {
  return new PodPrefetcher(tools);
}

class PodPrefetcher implements Prefetcher {
  readonly #tools: PrefetchTools;
  readonly #pods = new KnownPods();
  /** In the order in which they begin. */
  readonly #queue = new Map<PrefetchJob, KnownPod>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #stats = createCounters();
  #claiming = 0;
  #isOpen = false;
  #isClosed = false;

  constructor(tools: PrefetchTools) {
    this.#tools = tools;
    const tell = (error: unknown): void => tools.log.debug({ err: error }, "No address is claimed ahead of its ADD");
    tools.mayBegin.then(() => this.#open(), tell);
  }

  podChanged(pod: Pod): void {
    const owner = ownerOfPod(pod);
    if (owner === undefined || this.#isClosed) return;
    const place = `${pod.namespace}/${pod.name}`;
    const displaced = this.#pods.findDisplaced(owner, place);
    if (displaced !== undefined) this.#leave(displaced);
    const known = this.#pods.see(owner, place);
    const verdict = judgePod(pod, this.#tools.nodeName);
    known.pending = undefined;
    if (verdict.kind === "expected") this.#expect(owner, known, pod);
    else if (verdict.kind === "left") this.#pass(known);
    else this.#takeBack(known, verdict.reason);
  }

  podGone(pod: Pod): void {
    const owner = ownerOfPod(pod);
    if (owner !== undefined) this.#leave(owner);
  }

  async settle(owner: string, ifName: string, signal: AbortSignal): Promise<void> {
    if (this.#isClosed) return;
    const known = this.#pods.meet(owner);
    const isFirst = !known.attended.has(ifName) && !known.isLeft;
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

  claimedFor(owner: string, ifName: string): readonly Allocation[] {
    const known = this.#pods.find(owner);
    if (known !== undefined) this.#forgetOld(known);
    return known?.held.get(ifName) ?? [];
  }

  used(owner: string, ifName: string): void {
    if (this.#pods.find(owner)?.held.delete(ifName)) this.#stats.used++;
  }

  async discard(owner: string, ifName: string): Promise<void> {
    const held = this.#pods.find(owner)?.held;
    const rows = held?.get(ifName);
    if (rows === undefined) return;
    await this.#tools.registry.undo(rows);
    // Else the next ADD would find it, and take it for its own.
    if (held?.delete(ifName)) this.#stats.discarded++;
  }

  stats(): PrefetchStats {
    for (const [, known] of this.#pods.all()) this.#forgetOld(known);
    return { ...this.#stats };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [, { jobs }] of this.#pods.all()) {
      this.#withdraw(jobs, "withdrawn");
      for (const job of jobs) job.abort("the agent stops");
    }
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #open(): void {
    if (this.#isClosed) return;
    this.#isOpen = true;
    for (const [owner, known] of this.#pods.all()) {
      if (known.pending !== undefined) this.#expect(owner, known, known.pending);
      known.pending = undefined;
    }
  }

  #leave(owner: string): void {
    const known = this.#pods.remove(owner);
    if (known !== undefined) this.#takeBack(known, "the pod is gone");
  }

  /** It runs already, or has no NIC of ours. */
  #pass(known: KnownPod): void {
    known.isLeft = true;
    this.#withdraw(known.jobs, "withdrawn");
  }

  #expect(owner: string, known: KnownPod, pod: Pod): void {
    if (known.isPlanned) return;
    if (!this.#isOpen) {
      known.pending = pod;
      return;
    }
    known.isPlanned = true;
    for (const { nics } of this.#planFor(pod)) {
      if (nics.some(({ ifName }) => known.attended.has(ifName))) continue;
      const job = new PrefetchJob(owner, pod, nics);
      known.jobs.add(job);
      this.#queue.set(job, known);
      this.#stats.wanted += nics.length;
    }
    this.#beginNext();
  }

  /** What is wrong with the pod is told by its ADD, which the pod's events show. */
  #planFor(pod: Pod): readonly PrefetchGroup[] {
    try {
      return planGroups(pod, this.#tools.nics(pod));
    } catch (error) {
      this.#tools.log.debug({ err: error, namespace: pod.namespace, pod: pod.name }, "Left to the ADD");
      return [];
    }
  }

  #beginNext(): void {
    while (this.#claiming < PREFETCHES_AT_ONCE) {
      const [next] = this.#queue;
      if (next === undefined) return;
      const [job, known] = next;
      this.#queue.delete(job);
      this.#claiming++;
      const claiming = this.#claim(job, known).finally(() => {
        this.#claiming--;
        this.#end(job, known);
        this.#beginNext();
      });
      this.#track(claiming);
    }
  }

  async #claim(job: PrefetchJob, known: KnownPod): Promise<void> {
    try {
      const { claimed, found, attached } = await claimAhead(this.#tools, job, job.unwanted);
      this.#stats.claimed += claimed.size;
      this.#stats.found += found.size;
      this.#stats.withdrawn += attached.length;
      for (const [ifName, rows] of [...claimed, ...found]) known.held.set(ifName, rows);
      if (job.unwanted.aborted) this.#takeBack(known, "");
    } catch (error) {
      const { namespace, name } = job.pod;
      this.#stats[job.unwanted.aborted ? "withdrawn" : "failed"] += job.nics.length;
      this.#tools.log.debug({ err: error, namespace, pod: name }, "Not claimed ahead");
    }
  }

  /** Those of the jobs that have not begun never will. */
  #withdraw(jobs: ReadonlySet<PrefetchJob>, fate: "withdrawn" | "late"): void {
    for (const job of jobs) {
      const known = this.#queue.get(job);
      if (known === undefined) continue;
      this.#queue.delete(job);
      this.#end(job, known);
      this.#stats[fate] += job.nics.length;
    }
  }

  #end(job: PrefetchJob, known: KnownPod): void {
    known.jobs.delete(job);
    job.end();
  }

  /** No ADD will come: what is queued, under way and claimed. What an ADD has attached meanwhile is not touched: its rows have changed. */
  #takeBack(known: KnownPod, reason: string): void {
    known.isPlanned = true;
    this.#withdraw(known.jobs, "withdrawn");
    for (const job of known.jobs) job.abort(reason);
    const rows = [...known.held.values()].flat();
    this.#stats.returned += known.held.size;
    known.held.clear();
    if (rows.length === 0) return;
    const tell = (error: unknown): void =>
      this.#tools.log.warn({ err: error }, "Giving back what was claimed ahead failed; it is given back when its time is over"); // biome-ignore format: one thought
    this.#track(this.#tools.registry.undo(rows).catch(tell));
  }

  /** The janitor has given it back. */
  #forgetOld({ held }: KnownPod): void {
    const oldestMs = this.#tools.nowMs() - UNATTACHED_MS;
    for (const [ifName, rows] of held) {
      if (rows.every(({ sinceMs }) => sinceMs >= oldestMs)) continue;
      held.delete(ifName);
      this.#stats.timedOut++;
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }
}
