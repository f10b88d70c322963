/**
 * Who may take a Lease, and when. Time is what one observer's monotonic clock says since it saw the record change: the times in the record
 * are of other machines' clocks, and nobody compares them.
 */

export interface LeaseTimings {
  /** How long others wait for a holder that is silent: milliseconds, whole seconds in the record. */
  readonly durationMs: number;
  /** How long a holder leads after the start of its last successful renewal: milliseconds. */
  readonly renewDeadlineMs: number;
  /** Between two renewals, or two looks: milliseconds, more or less by a quarter. */
  readonly retryMs: number;
}

/** The longest pause between two renewals, as a part of `retryMs`. */
const LONGEST_PAUSE = 1.25;

/** Why two could lead at once, or none for long, with these. Undefined: they are fine. */
export function findTimingFault({ durationMs, renewDeadlineMs, retryMs }: LeaseTimings): string | undefined {
  if (!(retryMs > 0)) return `the time between two renewals is ${retryMs} ms, want more than 0`;
  if (durationMs % 1000 !== 0) return `the lease duration is ${durationMs} ms, want whole seconds`;
  if (!(durationMs > renewDeadlineMs))
    return `the lease duration is ${durationMs} ms, want more than the renew deadline of ${renewDeadlineMs} ms`;
  if (!(renewDeadlineMs > retryMs * LONGEST_PAUSE))
    return `the renew deadline is ${renewDeadlineMs} ms, want more than ${LONGEST_PAUSE} times the ${retryMs} ms between two renewals`;
  return undefined;
}

/** The pause before the next renewal or look: milliseconds. `random` is in [0, 1). */
export function pauseBetween(retryMs: number, random: number): number {
  return retryMs * (0.75 + 0.5 * random);
}

/** What a Lease says, as far as it matters to who waits. */
export interface LeaseRecord {
  /** "": nobody. */
  readonly holder: string;
  /** As its holder wrote it; undefined when that did not. */
  readonly durationMs: number | undefined;
  /** Another one after each renewal; whoever holds it. */
  readonly mark: string;
}

/** What one observer has seen: the record as it is, and since when it has been so. */
export interface ObservedLease {
  /** Undefined: there is no Lease. */
  readonly record: LeaseRecord | undefined;
  /** By the observer's own clock. */
  readonly sinceMs: number;
  /** Of the last record that there was; undefined when there never was one. */
  readonly lastDurationMs: number | undefined;
}

export interface LeaseRead {
  readonly record: LeaseRecord | undefined;
  /** When the answer had come. */
  readonly nowMs: number;
  /** For a record that does not say. */
  readonly durationMs: number;
}

/** What is seen now, after what was seen before. A record that has not changed keeps its time. */
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

export interface LeasePlanInput {
  readonly observed: ObservedLease;
  /** Whether the record is the one that this process wrote last, or may have written. */
  readonly isOwn: boolean;
  readonly isLeading: boolean;
  readonly nowMs: number;
}

export type LeasePlan =
  /** There is none, and nobody can still count on one. */
  | { readonly kind: "create" }
  /** To be written with its resource version: it is ours, nobody's, or of one who has been silent for too long. */
  | { readonly kind: "hold" }
  /** Somebody else may lead until then, by this observer's clock. */
  | { readonly kind: "wait"; readonly untilMs: number };

/**
 * A Lease that vanished is like one that is not renewed: whoever held it may not know yet. Only a process that never saw one makes it at
 * once, as in a new cluster.
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
