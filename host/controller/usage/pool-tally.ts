/**
 * Counts the addresses of one pool in use with every change: each costs a search among the pool's ranges, and a bit. Never stored; recounted when the
 * pool's ranges change.
 */
import type { Pool } from "../../core/pool.ts";
import type { PoolSpace } from "../../core/pool-space.ts";
import { sizeOf, spansOf } from "../../core/spans.ts";
import type { Ip } from "../../net/ip.ts";
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { PoolShape } from "../../resources/ip-pool-shape.ts";
import { MAX_USAGE_BITMAP_BYTES, type PoolUsage } from "../../resources/usage/ip-pool-usage.ts";
import { formatHash } from "../../resources/usage/ordinals.ts";

/** Allocations of one pool by state, wherever their addresses are. */
export type StateCounts = Readonly<Record<AllocationState, number>>;

export const NO_STATES: StateCounts = { Bound: 0, Cooling: 0, Kept: 0, Quarantined: 0 };

export class PoolTally {
  readonly ordinals: Ordinals;
  readonly #hash: string;
  readonly #masked: readonly Range[];
  /** Addresses that may be allocated. */
  readonly #total: bigint;
  /** Small pools have a bitmap, others `#freePerBlock`. */
  readonly #bitmap: Uint8Array | undefined;
  readonly #freePerBlock: Int32Array | undefined;
  /** Addresses of the ranges that have an allocation: all, the masked ones, and the pool's own. */
  #used = 0;
  #usedMasked = 0;
  #own = 0;

  constructor(space: PoolSpace, shape: PoolShape) {
    this.ranges = shape.ranges;
    this.#pool = space.createPool(shape);
    this.#hasBitmap = sizeOf(spansOf(shape.ranges)) <= BigInt(8 * MAX_USAGE_BITMAP_BYTES);
  }

  /** Counts an address that has an allocation now. Call it once per address; `isOwn`: it is the pool's. */
  take(ip: Ip, isOwn: boolean): void {
    if (this.#pool.claim(ip) !== "outside" && isOwn) this.#own++;
  }

  /** Counts an address whose allocation is gone. */
  drop(ip: Ip, isOwn: boolean): void {
    if (this.#pool.release(ip) !== "outside" && isOwn) this.#own--;
  }

  /** Addresses that may be allocated, and those of them that are not free; at most Number.MAX_SAFE_INTEGER. */
  get counts(): { readonly total: number; readonly used: number } {
    const { total, used, usedMasked } = this.#pool.counts();
    return { total: atMostSafe(total), used: used - usedMasked };
  }

  /** Returns the usage object's content with a copy of the bitmap. `states` are those of the pool's allocations. */
  usage(states: StateCounts): PoolUsage {
    const { total, free, used, digest } = this.#pool.counts();
    const all = states.Bound + states.Cooling + states.Kept + states.Quarantined;
    return {
      rangesHash: formatHash(digest),
      total: atMostSafe(total),
      free: atMostSafe(free),
      bound: states.Bound,
      cooling: states.Cooling,
      kept: states.Kept,
      quarantined: states.Quarantined,
      outside: all - this.#own,
      others: used - this.#own,
      bitmap: this.#hasBitmap ? this.#pool.usedBitmap() : undefined,
      freePerBlock: this.#hasBitmap ? undefined : [...this.#pool.freePerBlock()],
    };
  }

  /** The pool is gone, or has another shape: this object is not used any more. */
  close(): void {
    this.#pool.drop();
  }
}

/** Ordinals from `start` to before `end`. */
interface Span {
  readonly start: bigint;
  readonly end: bigint;
}

/** Both lists are ascending and disjoint, and so is the result. */
function maskedOrdinals({ ranges, before }: Ordinals, masked: readonly Range[]): Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const [index, { first, last }] of ranges.entries()) {
    const start = before[index] ?? 0n;
    while (at > 0 && (masked[at - 1]?.last.value ?? 0n) >= first.value) at--;
    for (; at < masked.length; at++) {
      const mask = masked[at];
      if (mask === undefined || mask.first.value > last.value) break;
      const from = mask.first.value > first.value ? mask.first.value : first.value;
      const to = mask.last.value < last.value ? mask.last.value : last.value;
      if (from <= to) spans.push({ start: start + from - first.value, end: start + to - first.value + 1n });
    }
  }
  return spans;
}

/** Returns the free addresses of each block of an unused pool. */
function blocksOf(size: bigint, hidden: readonly Span[]): Int32Array {
  const block = BigInt(USAGE_BLOCK);
  const count = Math.min(MAX_USAGE_BLOCKS, Number((size + block - 1n) / block));
  const free = Int32Array.from({ length: count }, (_, at) => {
    const left = size - BigInt(at) * block;
    return Number(left < block ? left : block);
  });
  const window = block * BigInt(count);
  for (const span of hidden) {
    const end = span.end < window ? span.end : window;
    for (let from = span.start; from < end; ) {
      const at = Number(from / block);
      const next = BigInt(at + 1) * block;
      const to = next < end ? next : end;
      free[at] = (free[at] ?? 0) - Number(to - from);
      from = to;
    }
  }
  return free;
}

function atMostSafe(count: bigint): number {
  return count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count);
}
