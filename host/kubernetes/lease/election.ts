/**
 * Elects one leader among several processes: the holder of a Lease (coordination.k8s.io/v1). plan-lease.ts decides
 * which process may take it; this file reads and writes it.
 *
 * Why there is at most one leader: a holder stops `renewDeadline` after the *start* of its last successful renewal. A
 * successor has seen that renewal, or a later one, after its *end*, and has waited for the longer `duration` since.
 * Each span is measured by one clock.
 *
 * Effects: calls in the background, a few per second at most; calls `lead`.
 */

import type { Log } from "../../lib/log.ts";
import { orElse } from "../../lib/try-or.ts";
import { describeFailure, pauseMs } from "../http/retry.ts";
import { isNotFound, isOutdated, type KubeApi, type KubeCall, type KubeObject } from "../kube-api.ts";
import { collectionPath, LEASES, objectPath } from "../paths.ts";
import { type ElectionClock, type Leading, LeadingTime } from "./leading.ts";
import { decodeLease, encodeLease, formatTime, type LeaseObject, type LeaseWrite, recordOf } from "./lease-object.ts";
import {
  findTimingFault,
  type LeaseTimings,
  type ObservedLease,
  observeLease,
  pauseBetween,
  planLease,
} from "./plan-lease.ts";

/**
 * Time for which releasing a Lease is tried when a holder stops: milliseconds. If it fails, the next one waits for
 * the Lease's duration.
 */
const LEASE_RELEASE_MS = 3_000;

export interface ElectionOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process: a name with a random suffix. */
  readonly identity: string;
  readonly timings: LeaseTimings;
  /** Annotations about itself in the Lease. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly clock: ElectionClock;
  /** Wall clock, for the times in the record. */
  readonly now: () => Date;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /**
   * Called when leading starts. Must resolve soon after the signal aborts, when this process no longer acts as the
   * leader; it does not lead again before that.
   */
  readonly lead: (leading: Leading) => Promise<void>;
  readonly log: Log;
}

/** Limits of one call. */
interface Limit {
  readonly limitMs: number;
  /** Aborts it as well. */
  readonly parent?: AbortSignal;
}

/** One time of leading and its work. */
interface LeadRun {
  readonly leading: LeadingTime;
  readonly done: Promise<void>;
}

export class Election {
  readonly #options: ElectionOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #lead: LeadRun | undefined;
  #observed: ObservedLease | undefined;
  /** The object as this process wrote it; undefined if another process may have written since. */
  #own: LeaseObject | undefined;
  /** The last write that this process tried: after a lost answer it is unknown whether it was written. */
  #written = "";
  #failures = 0;
  /** Why the Lease cannot be read or written: a sentence without a full stop. */
  problem: string | undefined;

  /** Throws for timings with which two processes could lead at once. */
  constructor(options: ElectionOptions) {
    const fault = findTimingFault(options.timings);
    if (fault !== undefined) throw new Error(`The lease cannot be held: ${fault}`);
    this.#options = options;
    this.#running = this.#run();
  }

  get #limit(): Limit {
    return { limitMs: this.#options.timings.renewDeadlineMs / 2, parent: this.#closing.signal };
  }

  get isLeading(): boolean {
    return this.#lead !== undefined && !this.#lead.leading.hasEnded;
  }

  /** The holder of the Lease as far as this process has seen; "" if there is none. */
  get holder(): string {
    return this.#observed?.record?.holder ?? "";
  }

  /** Stops leading, waits for `lead`, and releases the Lease, so that the next one need not wait. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The election was closed"));
    this.#lead?.leading.end("This process stops");
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      if (this.#lead?.leading.hasEnded) await this.#endLead(this.#lead);
      const waitMs = await this.#renewOrWait().catch((error: unknown) => this.#waitAfter(error));
      const wake = this.#lead?.leading.signal ?? signal;
      if (waitMs > 0) await clock.pause(waitMs, wake).catch(() => {});
    }
    if (this.#lead !== undefined) await this.#endLead(this.#lead);
    await this.#release();
  }

  async #endLead({ leading, done }: LeadRun): Promise<void> {
    this.#options.log.warn(
      { reason: describeFailure(leading.signal.reason) },
      "Lost the lease; this process no longer leads",
    );
    await done;
    this.#lead = undefined;
  }

  /** Reads or renews once. Returns the pause before the next time: milliseconds. */
  async #renewOrWait(): Promise<number> {
    const { clock, random, timings } = this.#options;
    for (let isSecond = false; ; isSecond = true) {
      const object = this.#own ?? (await this.#read());
      const plan = planLease({
        observed: this.#observe(object),
        isOwn: object !== undefined && this.#isOwn(object),
        isLeading: this.isLeading,
        nowMs: clock.nowMs(),
      });
      if (plan.kind === "wait") {
        this.#answered();
        this.#written = "";
        this.#lead?.leading.end(`The lease is held by "${this.holder}"`);
        return Math.min(pauseBetween(timings.retryMs, random()), Math.max(plan.untilMs - clock.nowMs(), 1));
      }
      if (await this.#hold(object)) return pauseBetween(timings.retryMs, random());
      // Another process has written, or our own answer was lost: a holder must find out at once.
      if (isSecond || !this.isLeading) return pauseBetween(timings.retryMs, random());
    }
  }

  /** Returns false if the object has changed since it was read. */
  async #hold(object: LeaseObject | undefined): Promise<boolean> {
    const startMs = this.#options.clock.nowMs();
    try {
      const written = await this.#write(object, { holder: this.#options.identity, isBeginning: !this.isLeading });
      this.#own = written;
      this.#observe(written);
      this.#answered();
      this.#gain(startMs + this.#options.timings.renewDeadlineMs);
      return true;
    } catch (error) {
      this.#own = undefined;
      if (isOutdated(error)) return false;
      throw error;
    }
  }

  #gain(deadlineMs: number): void {
    const { clock, identity, lead, log } = this.#options;
    if (this.#lead !== undefined) {
      this.#lead.leading.extend(deadlineMs);
      return;
    }
    // The answer came too late to be of use, or the election is closing.
    if (this.#closing.signal.aborted || clock.nowMs() >= deadlineMs) return;
    log.info({ identity }, "Acquired the lease; this process leads");
    const leading = new LeadingTime(clock, deadlineMs);
    const work = async () => lead(leading);
    const done = work()
      .catch((error: unknown) => log.error({ err: error }, "Internal error while leading"))
      .then(() => leading.end("The leader's work has ended"));
    this.#lead = { leading, done };
  }

  #observe(object: LeaseObject | undefined): ObservedLease {
    const { clock, timings } = this.#options;
    const record = object === undefined ? undefined : recordOf(object);
    this.#observed = observeLease(this.#observed, { record, nowMs: clock.nowMs(), durationMs: timings.durationMs });
    return this.#observed;
  }

  /** An older record of ours from a restored backup counts as foreign: another process may have led since. */
  #isOwn({ spec }: LeaseObject): boolean {
    return spec?.holderIdentity === this.#options.identity && (this.isLeading || spec.renewTime === this.#written);
  }

  /** Returns undefined if there is none. */
  async #read(limit: Limit = this.#limit): Promise<LeaseObject | undefined> {
    const { namespace, name } = this.#options;
    const path = objectPath(LEASES, { namespace, name });
    const found = await this.#call({ method: "GET", path }, limit).catch(orElse(isNotFound, undefined));
    return found && decodeLease(found);
  }

  /** Returns the object as written. Rejects with ApiError 409 if another process was faster, and 404 if it is gone. */
  async #write(
    before: LeaseObject | undefined,
    what: Pick<LeaseWrite, "holder" | "isBeginning">,
    limit: Limit = this.#limit,
  ): Promise<LeaseObject> {
    const { namespace, name, timings, annotations, now } = this.#options;
    const time = formatTime(now());
    const own = { namespace, name, annotations, durationMs: timings.durationMs };
    const body = encodeLease(before, { ...own, time, ...what });
    this.#written = time;
    const { path, method } =
      before === undefined
        ? { path: collectionPath(LEASES, namespace), method: "POST" as const }
        : { path: objectPath(LEASES, { namespace, name }), method: "PUT" as const };
    return decodeLease(await this.#call({ method, path, body }, limit));
  }

  /**
   * One attempt, for half of the holder's time, so that one dead connection does not cost the lease. It has priority
   * over the leader's own writes, which may queue.
   */
  async #call(call: KubeCall, { limitMs, parent }: Limit): Promise<KubeObject> {
    const { api, clock } = this.#options;
    const [limit, timer] = [new AbortController(), new AbortController()];
    clock.pause(limitMs, timer.signal).then(
      () => limit.abort(new Error(`The API server did not answer within ${limitMs} ms`)),
      () => {},
    );
    const signal = parent === undefined ? limit.signal : AbortSignal.any([limit.signal, parent]);
    try {
      return await api.call({ ...call, lane: "pod", patienceMs: 0, attemptMs: limitMs, signal });
    } finally {
      timer.abort();
    }
  }

  /** Removes this process from the record. Two attempts; without them the next process waits for the duration. */
  async #release(): Promise<void> {
    const { identity, log } = this.#options;
    const limit = { limitMs: LEASE_RELEASE_MS / 2 };
    for (const isLast of [false, true]) {
      try {
        // This process has never written.
        if (this.#written === "") return;
        const object = this.#own ?? (await this.#read(limit));
        if (object?.spec?.holderIdentity !== identity) return;
        await this.#write(object, { holder: "", isBeginning: false }, limit);
        log.info({ identity }, "Released the lease");
        return;
      } catch (error) {
        this.#own = undefined;
        if (isLast) log.warn({ reason: describeFailure(error) }, "Releasing the lease failed; it will expire");
      }
    }
  }

  #answered(): void {
    this.#failures = 0;
    this.problem = undefined;
  }

  #waitAfter(error: unknown): number {
    const { namespace, name, random, timings, log } = this.#options;
    if (this.#closing.signal.aborted) return 0;
    const reason = describeFailure(error);
    if (this.problem === undefined)
      log.warn({ lease: `${namespace}/${name}`, reason }, "Reading or writing the lease failed; retrying");
    this.problem = `Cannot read or write the Lease ${namespace}/${name}: ${reason}`;
    return Math.min(pauseMs(this.#failures++, random()), timings.retryMs);
  }
}
