/**
 * Range sets out of a pool. Set algebra does the rest: free is `ranges - masks - used`, and the used addresses that a
 * smaller shape would leave outside are `used - ranges`.
 * Effects: linear memory; may grow it.
 */
import { WIDE_HI, WIDE_LO } from "../abi";
import { windowOf } from "../bitmap/bitmap";
import { findUnused, findUsed } from "../bitmap/bitmap-search";
import { addHi } from "../numbers/u128";
import { createSet, freeSet, normalise, push } from "../sets/range-set";
import { addressOf, bitmapOf, endOfRange, masksOf, poolFamily, rangesOf, sparseOf } from "./pool";
import { sparseCapacity, sparseCount, sparseNext, sparseSlot } from "./sparse-set";

/** The last ordinal of the used run that starts at `first`, cut at the end of its range. */
function endOfUsedRun(pool: usize, first: u32): u32 {
  return endOfRange(pool, first, findUnused(bitmapOf(pool), first) - 1);
}

/** Most ranges that the used addresses can make. */
export function countUsedRuns(pool: usize): u32 {
  const bitmap = bitmapOf(pool);
  let runs = sparseCount(sparseOf(pool));
  for (let at = findUsed(bitmap, 0); at < windowOf(bitmap); at = findUsed(bitmap, endOfUsedRun(pool, at) + 1)) runs++;
  return runs;
}

/** Adds the used ordinals beyond the window to the set, or their addresses. There is room for them. */
function pushSparse(set: usize, pool: usize, asAddresses: bool): void {
  const sparse = sparseOf(pool);
  for (let index = sparseNext(sparse, 0); index < sparseCapacity(sparse); index = sparseNext(sparse, index + 1)) {
    const slot = sparseSlot(sparse, index);
    let hi = load<u64>(slot);
    let lo = load<u64>(slot, 8);
    if (asAddresses) {
      addressOf(pool, hi, lo);
      hi = load<u64>(WIDE_HI);
      lo = load<u64>(WIDE_LO);
    }
    push(set, hi, lo, hi, lo);
  }
}

/** The used ordinals beyond the window, as a set of family 6; 0 when there is no memory. */
export function sparseOrdinals(pool: usize): usize {
  const set = createSet(6, sparseCount(sparseOf(pool)));
  if (set == 0) return 0;
  pushSparse(set, pool, false);
  normalise(set);
  return set;
}

/** The used addresses, masked or not; 0 when there is no memory. */
export function usedSet(pool: usize): usize {
  const bitmap = bitmapOf(pool);
  const set = createSet(poolFamily(pool), countUsedRuns(pool));
  if (set == 0) return 0;
  let first = findUsed(bitmap, 0);
  while (first < windowOf(bitmap)) {
    const last = endOfUsedRun(pool, first);
    addressOf(pool, 0, first);
    const hi = load<u64>(WIDE_HI);
    const lo = load<u64>(WIDE_LO);
    const length = <u64>(last - first);
    push(set, hi, lo, addHi(hi, lo, 0, length), lo + length);
    first = findUsed(bitmap, last + 1);
  }
  pushSparse(set, pool, true);
  normalise(set);
  return set;
}
