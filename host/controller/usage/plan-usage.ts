/**
 * Decides when to write the usage of a pool, and the counts in the pool's own status: rarely, because all agents watch
 * the pools (exhaustion).
 */

/** Shortest time between two writes of a pool's usage object: milliseconds. */
export const USAGE_MIN_MS = 1_000;

/** Shortest time between two writes of a pool's usage object while little changes: milliseconds. */
const USAGE_WRITE_MS = 10_000;

/** Share of a pool's addresses whose change writes the usage object before USAGE_WRITE_MS. */
const USAGE_CHANGE_SHARE = 0.05;

/** Shortest time between two writes of the counts in a pool's status: milliseconds. */
const POOL_COUNTS_MS = 9_000;

/** Largest pools, in addresses, whose usage objects may wait for others: agents read only those of larger ones. */
export const USAGE_UNREAD_ADDRESSES = 4_096;

/**
 * Average time between two writes of usage objects of small pools: milliseconds. Otherwise with ten thousand pools of
 * 16 addresses every pod would cost a write.
 */
const USAGE_EACH_MS = 10;

/**
 * Writes of any pools' counts. Each is sent to every node: to 5,000 nodes, ten thousand pools a minute would be 800,000
 * events a second.
 */
export const POOL_COUNTS_RATE = { burst: 50, perSecond: 5, maxKeys: 1 };

/** Addresses that may be allocated, and those among them in use. */
export interface Counts {
  readonly total: number;
  readonly used: number;
}

interface UsageState {
  readonly now: Counts;
  /** As last written; undefined without an object, or for one of another pool or other ranges. */
  readonly written: Counts | undefined;
  /** Time since this process last wrote it; infinite if it never did. */
  readonly sinceMs: number;
  readonly pools: number;
}

/** Returns the time until the outdated object may be written: milliseconds. */
export function usageDueMs({ now, written, sinceMs, pools }: UsageState): number {
  const isOther = written === undefined || written.total !== now.total;
  const restMs = isOther || isFar(now, written) ? USAGE_MIN_MS : USAGE_WRITE_MS;
  const shareMs = isOther || now.total > USAGE_UNREAD_ADDRESSES ? 0 : pools * USAGE_EACH_MS;
  return Math.max(0, Math.max(restMs, shareMs) - sinceMs);
}

/** Returns the time until the pool's status may get these counts: milliseconds; undefined if it has them. */
export function countsDueMs({ now, written, sinceMs }: Omit<UsageState, "pools">): number | undefined {
  if (written?.total === now.total && written.used === now.used) return undefined;
  return Math.max(0, (written?.total === now.total ? POOL_COUNTS_MS : USAGE_MIN_MS) - sinceMs);
}

/** Returns whether two counts with one total differ much. */
function isFar(now: Counts, written: Counts): boolean {
  return Math.abs(now.used - written.used) >= Math.max(1, now.total * USAGE_CHANGE_SHARE);
}
