/**
 * How much of one pool is in use, counted along with every change. The marks and counts are the core's; they are never stored, and counted anew
 * when the pool's ranges change. A tally that sleeps has them packed: a pool takes a kilobyte and a half of the core's memory, which very many have
 * to share.
 */
import { Pool } from "../../core/pool.ts";
import type { PoolSpace } from "../../core/pool-space.ts";
import type { Ip } from "../../net/ip.ts";
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { PoolShape } from "../../resources/ip-pool-shape.ts";
import { formatRangesHash, MAX_USAGE_BITMAP_BYTES, type PoolUsage } from "../../resources/ip-pool-usage.ts";

/** Allocations of one pool by state, wherever their addresses are. */
export type StateCounts = Readonly<Record<AllocationState, number>>;

export const NO_STATES: StateCounts = { Bound: 0, Cooling: 0, Kept: 0, Quarantined: 0 };

interface TallyCounts {
  /** The allocatable addresses; at most Number.MAX_SAFE_INTEGER. */
  readonly total: number;
  /** How many of them are not free. */
  readonly used: number;
}

interface Asleep extends TallyCounts {
  /** A byte in each character: less memory than an array of bytes. */
  readonly marks: string;
}

/** Awake at first. */
export class PoolTally {
  readonly ranges: PoolShape["ranges"];
  #state: Pool | Asleep;
  /** Addresses of the ranges whose allocation is the pool's own. */
  #own = 0;

  constructor(space: PoolSpace, shape: PoolShape) {
    this.ranges = shape.ranges;
    this.#state = space.createPool(shape);
  }

  get isAsleep(): boolean {
    return !(this.#state instanceof Pool);
  }

  /** Leaves the core's memory. Until {@link wake}, only `ranges` and `counts` can be read. */
  sleep(): void {
    const { total, used } = this.counts;
    const marks = Buffer.from(this.#pool.save()).toString("latin1");
    this.#pool.drop();
    this.#state = { total, used, marks };
  }

  /** The shape is that which the tally was made of. */
  wake(space: PoolSpace, shape: PoolShape): void {
    if (this.#state instanceof Pool) return;
    const pool = space.createPool(shape);
    const result = pool.load(Buffer.from(this.#state.marks, "latin1"));
    if (result !== "loaded") throw new Error(`The marks of a pool cannot be loaded: ${result}`);
    this.#state = pool;
  }

  get #pool(): Pool {
    if (!(this.#state instanceof Pool)) throw new Error("The tally of a pool is asleep");
    return this.#state;
  }

  /** Counts an address that has an allocation now; `isOwn`: of this pool. Call once for each allocation. Addresses outside the ranges do not count. */
  take(ip: Ip, isOwn: boolean): void {
    if (this.#pool.claim(ip) !== "outside" && isOwn) this.#own++;
  }

  /** Takes back {@link take}. */
  drop(ip: Ip, isOwn: boolean): void {
    if (this.#pool.release(ip) !== "outside" && isOwn) this.#own--;
  }

  get counts(): TallyCounts {
    if (!(this.#state instanceof Pool)) return this.#state;
    const { total, used, usedMasked } = this.#state.counts();
    return { total: atMostSafe(total), used: used - usedMasked };
  }

  /** `states` are those of the pool's allocations. */
  usage(states: StateCounts): PoolUsage {
    const { total, free, used, window, digest } = this.#pool.counts();
    // The window is the number of addresses up to 2^24, which is above this limit.
    const hasBitmap = window <= 8 * MAX_USAGE_BITMAP_BYTES;
    const all = states.Bound + states.Cooling + states.Kept + states.Quarantined;
    return {
      rangesHash: formatRangesHash(digest),
      total: atMostSafe(total),
      free: atMostSafe(free),
      bound: states.Bound,
      cooling: states.Cooling,
      kept: states.Kept,
      quarantined: states.Quarantined,
      outside: all - this.#own,
      others: used - this.#own,
      bitmap: hasBitmap ? this.#pool.usedBitmap(window) : undefined,
      freePerBlock: hasBitmap ? undefined : [...this.#pool.freePerBlock()],
    };
  }

  /** The pool is gone, or has another shape: this object is not used any more. */
  close(): void {
    if (this.#state instanceof Pool) this.#state.drop();
  }
}

function atMostSafe(count: bigint): number {
  return count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count);
}
