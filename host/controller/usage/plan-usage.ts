/**
 * When the usage of a pool is written, and when its counts in the pool's own status are (allocation rule 11: all agents watch the pools, so
 * these move slowly).
 */

/** A pool's usage object is never written more often than this: milliseconds. @limit */
export const USAGE_MIN_MS = 1_000;

/** A pool's usage object is written at most so often while little changes: milliseconds (allocation rule 11). @limit */
export const USAGE_WRITE_MS = 10_000;

/** A usage object is written sooner than after USAGE_WRITE_MS when this share of the pool's addresses has become used or free since. @limit */
export const USAGE_CHANGE_SHARE = 0.05;

/** `status.used` of an IPPool follows after this when it is off by USAGE_CHANGE_SHARE of the pool: milliseconds. All agents watch the pools. @limit */
export const POOL_COUNTS_MS = 60_000;

/** `status.used` of an IPPool follows after this when it is off by less: milliseconds. @limit */
export const POOL_COUNTS_SLOW_MS = 600_000;

/** Addresses that may be handed out, and those of them that are not free. */
export interface Counts {
  readonly total: number;
  readonly used: number;
}

export interface UsageState {
  readonly now: Counts;
  /** As last written; undefined: there is no object, or one of another pool or other ranges. */
  readonly written: Counts | undefined;
  /** Since this process wrote it last; infinite when it never did. */
  readonly sinceMs: number;
}

/** After how long the object, which differs from what is known, may be written: milliseconds. */
export function usageDueMs({ now, written, sinceMs }: UsageState): number {
  const isLarge = written === undefined || isFar(now, written);
  return Math.max(0, (isLarge ? USAGE_MIN_MS : USAGE_WRITE_MS) - sinceMs);
}

/** After how long the pool's status is to have these counts: milliseconds. Undefined: it has them. */
export function countsDueMs({ now, written, sinceMs }: UsageState): number | undefined {
  if (written?.total === now.total && written.used === now.used) return undefined;
  if (written === undefined || written.total !== now.total) return Math.max(0, USAGE_MIN_MS - sinceMs);
  return Math.max(0, (isFar(now, written) ? POOL_COUNTS_MS : POOL_COUNTS_SLOW_MS) - sinceMs);
}

function isFar(now: Counts, written: Counts): boolean {
  const change = Math.abs(now.used - written.used);
  return now.total !== written.total || change >= Math.max(1, now.total * USAGE_CHANGE_SHARE);
}
