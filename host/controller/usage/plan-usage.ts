/**
 * When the usage of a pool is written, and when the counts in the pool's own status are: rarely, because all agents
 * watch the pools (exhaustion).
 */

/** Shortest time between two writes of a pool's usage object: milliseconds. */
export const USAGE_MIN_MS = 1_000;

/** Shortest time between two writes of a pool's usage object while little changes: milliseconds. */
const USAGE_WRITE_MS = 10_000;

/** Share of a pool's addresses whose change writes the usage object before USAGE_WRITE_MS. */
const USAGE_CHANGE_SHARE = 0.05;

/**
 * Longest time for which `status.used` of an IPPool may be off by USAGE_CHANGE_SHARE of the pool or more:
 * milliseconds. All agents watch the pools.
 */
const POOL_COUNTS_MS = 60_000;

/** Longest time for which `status.used` of an IPPool may be off by less: milliseconds. */
const POOL_COUNTS_SLOW_MS = 600_000;

/**
 * Pools of up to so many addresses wait with their usage objects for those of other pools: agents read only those of
 * larger ones.
 */
export const USAGE_UNREAD_ADDRESSES = 4_096;

/**
 * Shortest time between two writes of any small pools' usage objects, on average: milliseconds. With ten thousand
 * pools of 16 addresses every pod would cost a write otherwise.
 */
const USAGE_EACH_MS = 10;

/**
 * Shortest time between two writes of any pools' counts, on average: milliseconds. Each is sent to every node: to
 * 5,000 nodes, ten thousand pools a minute would be 800,000 events a second.
 */
const POOL_COUNTS_EACH_MS = 200;

/** Addresses that may be allocated, and those of them that are not free. */
export interface Counts {
  readonly total: number;
  readonly used: number;
}

interface UsageState {
  readonly now: Counts;
  /** As last written; undefined if there is no object, or one of another pool or other ranges. */
  readonly written: Counts | undefined;
  /** Time since this process wrote it last; infinite if it never did. */
  readonly sinceMs: number;
  /** Number of pools. */
  readonly pools: number;
}

/** Returns after how long the object, which is out of date, may be written: milliseconds. */
export function usageDueMs({ now, written, sinceMs, pools }: UsageState): number {
  const isOther = written === undefined || written.total !== now.total;
  const restMs = isOther || isFar(now, written) ? USAGE_MIN_MS : USAGE_WRITE_MS;
  const shareMs = isOther || now.total > USAGE_UNREAD_ADDRESSES ? 0 : pools * USAGE_EACH_MS;
  return Math.max(0, Math.max(restMs, shareMs) - sinceMs);
}

/** Returns after how long the pool's status must have these counts: milliseconds; undefined if it has them. */
export function countsDueMs({ now, written, sinceMs, pools }: UsageState): number | undefined {
  if (written?.total === now.total && written.used === now.used) return undefined;
  if (written === undefined || written.total !== now.total) return Math.max(0, USAGE_MIN_MS - sinceMs);
  const restMs = isFar(now, written) ? POOL_COUNTS_MS : POOL_COUNTS_SLOW_MS;
  return Math.max(0, Math.max(restMs, pools * POOL_COUNTS_EACH_MS) - sinceMs);
}

/** Returns whether two counts with one total differ much. */
function isFar(now: Counts, written: Counts): boolean {
  return Math.abs(now.used - written.used) >= Math.max(1, now.total * USAGE_CHANGE_SHARE);
}
