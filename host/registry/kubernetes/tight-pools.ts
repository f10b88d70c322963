/**
 * Which pools are small or nearly full, so that others must see which of their addresses cool (allocation rule 10).
 * Called by kubernetes-registry.ts; asked by publisher.ts.
 */

/** A larger pool tells so, too, from this share in use. @limit */
export const TIGHT_SHARE = 0.8;

/** Pools up to this size always tell the API server of their addresses that cool: others may have to take them over. @limit */
export const SMALL_POOL_ADDRESSES = 256;

/** How long a pool that was found nearly full, or wanted, is taken for that: milliseconds. @limit */
export const TIGHT_MS = 600_000;

export interface TightPoolsOptions {
  /** How many addresses the pool has; undefined when there is no such pool. */
  readonly poolSize: (pool: string) => number | undefined;
  /** Which share of the pool is in use as far as is known here, 0 to 1. */
  readonly usedShare: (pool: string) => number | undefined;
  readonly nowMs: () => number;
}

export class TightPools {
  readonly #options: TightPoolsOptions;
  readonly #untilMs = new Map<string, number>();

  constructor(options: TightPoolsOptions) {
    this.#options = options;
  }

  /** Somebody wants the pool, or has found it full. */
  note(pool: string): void {
    this.#untilMs.set(pool, this.#options.nowMs() + TIGHT_MS);
  }

  isTight(pool: string): boolean {
    const { poolSize, usedShare, nowMs } = this.#options;
    const size = poolSize(pool);
    // Renamed or made anew: whose the addresses are now, and how full that is, is not known by this name.
    if (size === undefined) return true;
    if (size <= SMALL_POOL_ADDRESSES || (usedShare(pool) ?? 0) >= TIGHT_SHARE) return true;
    const untilMs = this.#untilMs.get(pool);
    if (untilMs !== undefined && untilMs <= nowMs()) this.#untilMs.delete(pool);
    return this.#untilMs.has(pool);
  }
}
