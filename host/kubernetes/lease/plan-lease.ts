/**
 * Decides which process may take a Lease, and when. An observer measures time by its own monotonic clock since it saw
 * the record change: the times in the record are other machines', and are not compared.
 */

export interface LeaseTimings {
  /** Time for which others wait for a silent holder: milliseconds, whole seconds in the record. */
  readonly durationMs: number;
  /** Time for which a holder leads after the start of its last successful renewal: milliseconds. */
  readonly renewDeadlineMs: number;
  /** Between two renewals or reads: milliseconds, plus or minus a quarter. */
  readonly retryMs: number;
}

/** The longest pause between two renewals, as a multiple of `retryMs`. */
const LONGEST_PAUSE = 1.25;

/** Returns why two processes could lead at once, or none for long; undefined for valid timings. */
export function findTimingFault({ durationMs, renewDeadlineMs, retryMs }: LeaseTimings): string | undefined {
  if (!(retryMs > 0)) return `the time between two renewals is ${retryMs} ms, want more than 0`;
  if (durationMs % 1000 !== 0) return `the lease duration is ${durationMs} ms, want whole seconds`;
  if (!(durationMs > renewDeadlineMs))
    return `the lease duration is ${durationMs} ms, want more than the renew deadline of ${renewDeadlineMs} ms`;
  if (!(renewDeadlineMs > retryMs * LONGEST_PAUSE))
    return `the renew deadline is ${renewDeadlineMs} ms, want more than ${LONGEST_PAUSE} times the ${retryMs} ms between two renewals`;
  return undefined;
}

/** Returns the pause before the next renewal or read: milliseconds. `random` is in [0, 1). */
export function pauseBetween(retryMs: number, random: number): number {
  return retryMs * (0.75 + 0.5 * random);
}

/** The part of a Lease that matters to the other processes. */
export interface LeaseRecord {
  /** "" if there is none. */
  readonly holder: string;
  /** As its holder wrote it; undefined if it is missing. */
  readonly durationMs: number | undefined;
  /** Changes with every renewal, whoever holds the Lease. */
  readonly mark: string;
}

/** The record as one observer sees it, and since when it has been so. */
export interface ObservedLease {
  /** undefined if there is no Lease. */
  readonly record: LeaseRecord | undefined;
  /** By the observer's own clock. */
  readonly sinceMs: number;
  /** Duration of the last record; undefined if there never was one. */
  readonly lastDurationMs: number | undefined;
}

interface LeaseRead {
  readonly record: LeaseRecord | undefined;
  /** When the answer arrived. */
  readonly nowMs: number;
  /** For a record without a duration. */
  readonly durationMs: number;
}

/** Returns the new observation. A record that has not changed keeps its time. */
export function observeLease(
  before: ObservedLease | undefined,
  { record, nowMs, durationMs }: LeaseRead,
): ObservedLease {
  const isSame = before !== undefined && before.record?.mark === record?.mark;
  return {
    record,
    sinceMs: isSame ? before.sinceMs : nowMs,
    lastDurationMs: record === undefined ? before?.lastDurationMs : (record.durationMs ?? durationMs),
  };
}

interface LeasePlanInput {
  readonly observed: ObservedLease;
  /** Whether the record is this process's last write, or may be. */
  readonly isOwn: boolean;
  readonly isLeading: boolean;
  readonly nowMs: number;
}

type LeasePlan =
  /** There is none, and no process can still rely on one. */
  | { readonly kind: "create" }
  /** Write it with its resource version: it is this process's, or no holder's, or was not renewed in time. */
  | { readonly kind: "hold" }
  /** Another process may lead until then, by this observer's clock. */
  | { readonly kind: "wait"; readonly untilMs: number };

/**
 * A missing Lease counts as one that is not renewed: its holder may not know yet. Only a process that has never seen
 * one creates it at once, as in a new cluster.
 */
export function planLease({ observed, isOwn, isLeading, nowMs }: LeasePlanInput): LeasePlan {
  const { record, sinceMs, lastDurationMs } = observed;
  const untilMs = sinceMs + (lastDurationMs ?? 0);
  if (record === undefined) {
    return isLeading || nowMs >= untilMs ? { kind: "create" } : { kind: "wait", untilMs };
  }
  if (isOwn || record.holder === "" || nowMs >= untilMs) return { kind: "hold" };
  return { kind: "wait", untilMs };
}
