/**
 * Contiguous runs: so many neighbouring addresses, aligned or not, as for a block or a delegated prefix.
 * Effects: linear memory; may grow it.
 */
import { NONE, OK, OUTSIDE } from "../abi";
import { releaseOrdinal, setRun, USED, windowOf } from "../bitmap/bitmap";
import { findFree, findTaken, findUsed } from "../bitmap/bitmap-search";
import { operateAt, RELEASE } from "../pools/mark";
import { bitmapOf, endOfRange, rangesOf } from "../pools/pool";
import { beforeHiOf, beforeLoOf, endOf, findOrdinalEntry, firstLoOf, nextEntry } from "../sets/range-set";

/** Widest alignment: a whole window. */
export const MAX_ALIGN_BITS: i32 = 24;

/** The first ordinal from `ordinal` on whose address is a multiple of 2^alignBits. */
function alignUp(entry: usize, ordinal: u32, alignBits: u32): u32 {
  const low = <u32>firstLoOf(entry) + (ordinal - <u32>beforeLoOf(entry));
  return ordinal + (-low & ((1 << alignBits) - 1));
}

/** A run inside one range that starts at or after `start`; NONE when there is none. */
function findRunInRange(pool: usize, entry: usize, start: u32, count: u32, alignBits: u32): i32 {
  const bitmap = bitmapOf(pool);
  const last = endOfRange(pool, start, windowOf(bitmap) - 1);
  let first = alignUp(entry, start, alignBits);
  while (<u64>first + count - 1 <= <u64>last) {
    const taken = findTaken(bitmap, first, first + count - 1);
    if (taken == first + count) return <i32>first;
    const next = findFree(bitmap, taken);
    if (next < 0 || <u32>next > last) return NONE;
    first = alignUp(entry, <u32>next, alignBits);
  }
  return NONE;
}

function findRunFrom(pool: usize, start: u32, count: u32, alignBits: u32): i32 {
  const ranges = rangesOf(pool);
  let ordinal = start;
  let entry = findOrdinalEntry(ranges, 0, start);
  const end = endOf(ranges);
  while (true) {
    const found = findRunInRange(pool, entry, ordinal, count, alignBits);
    if (found >= 0) return found;
    entry = nextEntry(entry);
    if (entry == end) return NONE;
    if (beforeHiOf(entry) != 0 || beforeLoOf(entry) >= <u64>windowOf(bitmapOf(pool))) return NONE;
    ordinal = <u32>beforeLoOf(entry);
  }
}

/**
 * The first ordinal of `count` free ones whose addresses follow one another, the first address a multiple of
 * 2^alignBits; from `start` modulo the window on, wrapping once. NONE when there is no such run. `count` > 0.
 */
export function findRun(pool: usize, start: u32, count: u32, alignBits: u32): i32 {
  const window = windowOf(bitmapOf(pool));
  if (window == 0) return NONE;
  const found = findRunFrom(pool, start % window, count, alignBits);
  return found == NONE ? findRunFrom(pool, 0, count, alignBits) : found;
}

/** OK when the `count` > 0 ordinals from `first` on lie in the window. */
function checkRun(pool: usize, first: u32, count: u32): i32 {
  return <u64>first + count > <u64>windowOf(bitmapOf(pool)) ? OUTSIDE : OK;
}

/** Marks ordinals not used: how many of them were, or OUTSIDE. */
export function releaseRun(pool: usize, first: u32, count: u32): i32 {
  const status = checkRun(pool, first, count);
  if (status != OK) return status;
  const bitmap = bitmapOf(pool);
  let released = 0;
  for (let at = findUsed(bitmap, first); at < first + count; at = findUsed(bitmap, at + 1)) {
    released += operateAt(pool, RELEASE, at);
  }
  return released;
}

/** Marks ordinals used, all or none: 1 done, 0 one of them is not free, OUTSIDE or NO_MEMORY. */
export function claimRun(pool: usize, first: u32, count: u32): i32 {
  const status = checkRun(pool, first, count);
  if (status != OK) return status;
  const last = first + count - 1;
  if (findTaken(bitmapOf(pool), first, last) <= last) return 0;
  const result = setRun(bitmapOf(pool), first, last, USED);
  if (result == OK) return 1;
  // Not a release: these ordinals were free before, and keep their place in the order of release.
  for (let ordinal = first; ordinal <= last; ordinal++) releaseOrdinal(bitmapOf(pool), ordinal);
  return result;
}
