/**
 * Range sets: sorted, disjoint, not touching, inclusive ranges of one family, with running totals. Called by the ABI
 * and by pools, which keep two: their ranges and their masked addresses.
 * Effects: linear memory; may grow it.
 *
 * set: family u32 │ count u32 │ capacity u32 │ - │ entries, 48 bytes each │ one more, of which only `before` counts
 * entry: first hi, lo │ last hi, lo │ before hi, lo (before = addresses in the entries before this one)
 */
import { allocate, free } from "../memory/heap";
import { addHi, less, lessAt, subHi } from "../numbers/u128";

const COUNT: usize = 4;
const CAPACITY: usize = 8;
const ENTRIES: usize = 16;
const ENTRY_BYTES: u32 = 48;
/** Offsets of an entry's 128-bit fields. */
export const FIRST: usize = 0;
export const LAST: usize = 16;
export const BEFORE: usize = 32;
const LO: usize = 8;

export function familyOf(set: usize): u32 {
  return load<u32>(set);
}

/** Number of ranges. */
export function countOf(set: usize): u32 {
  return load<u32>(set, COUNT);
}

export function entryAt(set: usize, index: u32): usize {
  return set + ENTRIES + index * ENTRY_BYTES;
}

/** The place after the last entry. */
export function endOf(set: usize): usize {
  return entryAt(set, countOf(set));
}

/** The place after an entry: the next one, or the end of the set. */
export function nextEntry(entry: usize): usize {
  return entry + ENTRY_BYTES;
}

export function firstHiOf(entry: usize): u64 {
  return load<u64>(entry, FIRST);
}
export function firstLoOf(entry: usize): u64 {
  return load<u64>(entry, FIRST + LO);
}
export function lastHiOf(entry: usize): u64 {
  return load<u64>(entry, LAST);
}
export function lastLoOf(entry: usize): u64 {
  return load<u64>(entry, LAST + LO);
}
export function beforeHiOf(entry: usize): u64 {
  return load<u64>(entry, BEFORE);
}
export function beforeLoOf(entry: usize): u64 {
  return load<u64>(entry, BEFORE + LO);
}

function bytesFor(capacity: u32): u32 {
  return <u32>ENTRIES + (capacity + 1) * ENTRY_BYTES;
}

/** An empty set with room for `capacity` ranges; 0 when there is no memory. */
export function createSet(family: u32, capacity: u32): usize {
  const set = allocate(bytesFor(capacity));
  if (set == 0) return 0;
  store<u32>(set, family);
  store<u32>(set, 0, COUNT);
  // And the word behind it.
  store<u64>(set, capacity, CAPACITY);
  return set;
}

export function freeSet(set: usize): void {
  if (set != 0) free(set, bytesFor(load<u32>(set, CAPACITY)));
}

/** A copy without spare room; 0 when there is no memory. */
export function copySet(set: usize): usize {
  const copy = createSet(familyOf(set), countOf(set));
  if (copy == 0) return 0;
  pushAll(copy, set);
  return copy;
}

/** Adds the ranges of another set at the end, unchecked, with its totals. There is room for them. */
export function pushAll(set: usize, other: usize): void {
  const count = countOf(set);
  memory.copy(entryAt(set, count), entryAt(other, 0), (countOf(other) + 1) * ENTRY_BYTES);
  store<u32>(set, count + countOf(other), COUNT);
}

/** Adds a range at the end, unchecked: {@link normalise} brings order. There is room for it. */
export function push(set: usize, firstHi: u64, firstLo: u64, lastHi: u64, lastLo: u64): void {
  const count = countOf(set);
  const entry = entryAt(set, count);
  store<u64>(entry, firstHi, FIRST);
  store<u64>(entry, firstLo, FIRST + LO);
  store<u64>(entry, lastHi, LAST);
  store<u64>(entry, lastLo, LAST + LO);
  store<u32>(set, count + 1, COUNT);
}

export function firstBelow(a: usize, b: usize): bool {
  return lessAt(a + FIRST, b + FIRST);
}

function swap(a: usize, b: usize): void {
  for (let offset: usize = FIRST; offset < BEFORE; offset += 8) {
    const word = load<u64>(a + offset);
    store<u64>(a + offset, load<u64>(b + offset));
    store<u64>(b + offset, word);
  }
}

function siftDown(set: usize, start: u32, count: u32): void {
  let parent = start;
  while (parent * 2 + 1 < count) {
    let child = parent * 2 + 1;
    if (child + 1 < count && firstBelow(entryAt(set, child), entryAt(set, child + 1))) child++;
    if (!firstBelow(entryAt(set, parent), entryAt(set, child))) return;
    swap(entryAt(set, parent), entryAt(set, child));
    parent = child;
  }
}

function isSorted(set: usize): bool {
  for (let entry = entryAt(set, 1); entry < endOf(set); entry = nextEntry(entry)) {
    if (firstBelow(entry, entry - ENTRY_BYTES)) return false;
  }
  return true;
}

/** Heapsort by first address: no extra memory, no bad case. */
function sort(set: usize): void {
  if (isSorted(set)) return;
  const count = countOf(set);
  for (let start = count / 2; start > 0; start--) siftDown(set, start - 1, count);
  for (let end = count - 1; end > 0; end--) {
    swap(entryAt(set, 0), entryAt(set, end));
    siftDown(set, 0, end);
  }
}

/** Whether `next`, which does not start before `entry`, overlaps or touches it. */
function joins(entry: usize, next: usize): bool {
  if (!lessAt(entry + LAST, next + FIRST)) return true;
  const lo = lastLoOf(entry);
  return addHi(lastHiOf(entry), lo, 0, 1) == firstHiOf(next) && lo + 1 == firstLoOf(next);
}

/** Sorts, joins ranges that overlap or touch, and sets the running totals. */
export function normalise(set: usize): void {
  sort(set);
  const count = countOf(set);
  let kept: u32 = 0;
  for (let index: u32 = 0; index < count; index++) {
    const next = entryAt(set, index);
    const entry = entryAt(set, kept - 1);
    if (kept > 0 && joins(entry, next)) {
      if (lessAt(entry + LAST, next + LAST)) memory.copy(entry + LAST, next + LAST, 16);
    } else {
      memory.copy(entryAt(set, kept), next, BEFORE);
      kept++;
    }
  }
  store<u32>(set, kept, COUNT);
  total(set);
}

/** Sets the running totals of ranges that are in order. */
export function total(set: usize): void {
  let hi: u64 = 0;
  let lo: u64 = 0;
  let entry = entryAt(set, 0);
  while (true) {
    store<u64>(entry, hi, BEFORE);
    store<u64>(entry, lo, BEFORE + LO);
    if (entry == endOf(set)) return;
    const lengthLo = lastLoOf(entry) - firstLoOf(entry) + 1;
    const lengthHi = subHi(lastHiOf(entry), lastLoOf(entry), firstHiOf(entry), firstLoOf(entry)) + u64(lengthLo == 0);
    hi = addHi(hi, lo, lengthHi, lengthLo);
    lo = lo + lengthLo;
    entry = nextEntry(entry);
  }
}

/** High half of the number of addresses, modulo 2^128: 0 for a set that is not empty means 2^128. */
export function sizeHi(set: usize): u64 {
  return beforeHiOf(endOf(set));
}

/** Low half of the number of addresses. */
export function sizeLo(set: usize): u64 {
  return beforeLoOf(endOf(set));
}

/** The last entry whose 128-bit field at `field` is not above the number; the place before the first when all are. */
function lastNotAbove(set: usize, field: usize, hi: u64, lo: u64): usize {
  let found = entryAt(set, 0) - ENTRY_BYTES;
  let left = countOf(set);
  while (left != 0) {
    const half = (left + 1) >>> 1;
    const entry = found + half * ENTRY_BYTES;
    if (!less(hi, lo, load<u64>(entry + field), load<u64>(entry + field, LO))) found = entry;
    left -= half;
  }
  return found;
}

/** The entry at or before the address: the last whose first address is not above it; 0 when all are. */
export function findAtOrBefore(set: usize, hi: u64, lo: u64): usize {
  const found = lastNotAbove(set, FIRST, hi, lo);
  return found < set ? 0 : found;
}

/** The entry that holds the address; 0 when none does. */
export function findEntry(set: usize, hi: u64, lo: u64): usize {
  const entry = findAtOrBefore(set, hi, lo);
  return entry == 0 || less(lastHiOf(entry), lastLoOf(entry), hi, lo) ? 0 : entry;
}

/** The entry that holds the ordinal, which is below the size of the set. */
export function findOrdinalEntry(set: usize, hi: u64, lo: u64): usize {
  return lastNotAbove(set, BEFORE, hi, lo);
}
