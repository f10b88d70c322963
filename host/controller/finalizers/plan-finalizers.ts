/**
 * Which pools get the finalizer, and which may lose it (allocation rule 15): it is there from first sight, and stays as long as an
 * allocation names the pool.
 */
import type { ControlledPool } from "../objects.ts";

/** How long after a pool's deletion was seen its finalizer stays at least: milliseconds. Agents hear of the deletion meanwhile. @limit */
export const POOL_LEAVING_MS = 2_000;

/** How often a pool is looked at that is being deleted, if no event says that its last address is free: milliseconds. @limit */
export const POOL_LEAVING_RECHECK_MS = 30_000;

/** The finalizer of a pool: the API server keeps the object until it is taken away. */
export const IN_USE_FINALIZER = "ipam.vendor.io/in-use";

export interface FinalizerView {
  readonly pools: Iterable<ControlledPool>;
  /** Whether an allocation of the pool is known. */
  readonly isHeld: (pool: string) => boolean;
  /** How long the pool of this UID has been known to be in deletion: milliseconds. */
  readonly leavingMs: (pool: ControlledPool) => number;
}

export interface FinalizerPlan {
  /** They have none and are not in deletion: nobody may add one then. */
  readonly mark: readonly ControlledPool[];
  /** Nothing is known to be held: a consistent list has the last word. */
  readonly ask: readonly ControlledPool[];
  /** When to plan again if nothing changes: milliseconds. */
  readonly nextMs: number | undefined;
}

export function planFinalizers({ pools, isHeld, leavingMs }: FinalizerView): FinalizerPlan {
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
