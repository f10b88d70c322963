/**
 * How much of one pool is in use, counted along with every change: each address that becomes used or free costs a search among the pool's ranges
 * and a bit.
 */

import type { Ip } from "../../net/ip.ts";
import type { Range } from "../../net/range.ts";
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { PoolShape } from "../../resources/ip-pool-shape.ts";
import {
  MAX_USAGE_BITMAP_BYTES,
  MAX_USAGE_BLOCKS,
  type PoolUsage,
  USAGE_BLOCK,
} from "../../resources/usage/ip-pool-usage.ts";
import { findRange, hashOfRanges, type Ordinals, ordinalOf, ordinalsOf } from "../../resources/usage/ordinals.ts";

/** Allocations of one pool by state, wherever their addresses are. */
export type StateCounts = Readonly<Record<AllocationState, number>>;

export const NO_STATES: StateCounts = { Bound: 0, Cooling: 0, Kept: 0, Quarantined: 0 };

export class PoolTally {
  readonly ordinals: Ordinals;
  readonly #hash: string;
  readonly #masked: readonly Range[];
  /** Allocatable addresses. */
  readonly #total: bigint;
  /** Of small pools; else `#freePerBlock`. */
  readonly #bitmap: Uint8Array | undefined;
  readonly #freePerBlock: Int32Array | undefined;
  /** Addresses of the ranges that have an allocation: all, those that are masked, and those of the pool itself. */
  #used = 0;
  #usedMasked = 0;
  #own = 0;

  constructor({ ranges, masked }: PoolShape) {
    this.ordinals = ordinalsOf(ranges);
    this.#hash = hashOfRanges(this.ordinals);
    this.#masked = masked;
    const hidden = maskedOrdinals(this.ordinals, masked);
    this.#total = this.ordinals.size - hidden.reduce((sum, { start, end }) => sum + end - start, 0n);
    if (this.ordinals.size <= BigInt(8 * MAX_USAGE_BITMAP_BYTES)) {
      this.#bitmap = new Uint8Array(Math.ceil(Number(this.ordinals.size) / 8));
    } else this.#freePerBlock = blocksOf(this.ordinals.size, hidden);
  }

  /** An address of the ranges has an allocation now; `isOwn`: it is the pool's. Told once of each. */
  take(ip: Ip, isOwn: boolean): void {
    this.#count(ip, isOwn, 1);
  }

  /** It has none any more. */
  drop(ip: Ip, isOwn: boolean): void {
    this.#count(ip, isOwn, -1);
  }

  /** Allocatable addresses, and those of them that are not free; at most Number.MAX_SAFE_INTEGER. */
  get counts(): { readonly total: number; readonly used: number } {
    return { total: atMostSafe(this.#total), used: this.#used - this.#usedMasked };
  }

  /** What a reader gets; `bitmap` is a copy. `states` are those of the pool's allocations. */
  usage(states: StateCounts): PoolUsage {
    const free = this.#total - BigInt(this.#used - this.#usedMasked);
    const all = states.Bound + states.Cooling + states.Kept + states.Quarantined;
    return {
      rangesHash: this.#hash,
      total: atMostSafe(this.#total),
      free: atMostSafe(free),
      ...{ bound: states.Bound, cooling: states.Cooling, kept: states.Kept, quarantined: states.Quarantined },
      outside: all - this.#own,
      others: this.#used - this.#own,
      bitmap: this.#bitmap?.slice(),
      freePerBlock: this.#freePerBlock === undefined ? undefined : [...this.#freePerBlock],
    };
  }

  #count(ip: Ip, isOwn: boolean, step: 1 | -1): void {
    const ordinal = ordinalOf(this.ordinals, ip);
    if (ordinal === undefined) return;
    const isMasked = findRange(this.#masked, ip) >= 0;
    this.#used += step;
    if (isMasked) this.#usedMasked += step;
    if (isOwn) this.#own += step;
    if (this.#bitmap !== undefined) {
      const [byte, bit] = [Number(ordinal >> 3n), 1 << Number(ordinal & 7n)];
      const before = this.#bitmap[byte] ?? 0;
      this.#bitmap[byte] = step === 1 ? before | bit : before & ~bit;
    }
    const block = ordinal / BigInt(USAGE_BLOCK);
    if (this.#freePerBlock !== undefined && !isMasked && block < BigInt(this.#freePerBlock.length)) {
      this.#freePerBlock[Number(block)] = (this.#freePerBlock[Number(block)] ?? 0) - step;
    }
  }
}

/** Ordinals from `start` to before `end`. */
interface Span {
  readonly start: bigint;
  readonly end: bigint;
}

/** Both lists are ascending and disjoint, and so is the answer. */
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

/** Free addresses in each block while nothing is in use. */
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
