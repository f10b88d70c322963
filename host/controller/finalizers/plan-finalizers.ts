/**
 * Decides which pools get the finalizer, and which may lose it (pool-changes): every pool has it, and a deleted pool
 * keeps it as long as an allocation names it.
 */
import type { ControlledPool } from "../objects.ts";

/** Shortest time for which a deleted pool keeps its finalizer, so that agents see the deletion: milliseconds. */
export const POOL_LEAVING_MS = 2_000;

/** Interval at which a pool in deletion is checked without an event: milliseconds. */
export const POOL_LEAVING_RECHECK_MS = 30_000;

/** The finalizer of pools and Subnets: the API server keeps the object until it is removed. */
export const IN_USE_FINALIZER = "ipam.vendor.io/in-use";

interface FinalizerView {
  readonly pools: Iterable<ControlledPool>;
  /** Whether an allocation of the pool is cached. */
  readonly isHeld: (pool: string) => boolean;
  /** Returns the time since the deletion of the pool was seen: milliseconds. */
  readonly leavingMs: (pool: ControlledPool) => number;
}

/**
 * Returns the pools to `mark`, which lack the finalizer and are not deleted (the API server accepts no new one later);
 * deleted ones without a cached allocation, for which a consistent list decides (`ask`); and when to plan again if
 * nothing changes: milliseconds.
 */
export function planFinalizers({ pools, isHeld, leavingMs }: FinalizerView) {
  const mark: ControlledPool[] = [];
  const ask: ControlledPool[] = [];
  let nextMs: number | undefined;
  for (const pool of pools) {
    const isMarked = pool.finalizers.includes(IN_USE_FINALIZER);
    if (!pool.deleting && !isMarked) mark.push(pool);
    if (!pool.deleting || !isMarked) continue;
    const waitMs = POOL_LEAVING_MS - leavingMs(pool);
    if (waitMs <= 0 && !isHeld(pool.name)) ask.push(pool);
    const lookMs = waitMs > 0 ? waitMs : POOL_LEAVING_RECHECK_MS;
    nextMs = Math.min(nextMs ?? lookMs, lookMs);
  }
  return { mark, ask, nextMs };
}
