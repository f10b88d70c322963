/**
 * Range sets: sorted, disjoint, not touching, inclusive ranges of one family, with running totals.
 * Called by the ABI and by pools, which keep two: their ranges and what is masked in them.
 * Effects: linear memory; may grow it.
 *
 *  set:    family u32 │ count u32 │ capacity u32 │ - │ entries, 48 bytes each
 *  entry:  first hi, lo │ last hi, lo │ before hi, lo     (before = addresses in the entries before this one)
 */
import { NONE } from "./abi";
import { allocate, free } from "./heap";
import { addHi, lastHi, lastLo, less, subHi } from "./u128";

export const COUNT: usize = 4;
const CAPACITY: usize = 8;
const ENTRIES: usize = 16;
const ENTRY_BYTES: u32 = 48;
const FIRST: usize = 0;
const LAST: usize = 16;
const BEFORE: usize = 32;
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

/** An empty set with room for `capacity` ranges; 0 when there is no memory. */
export function createSet(family: u32, capacity: u32): usize {
  const set = allocate(<u32>ENTRIES + capacity * ENTRY_BYTES);
  if (set == 0) return 0;
  store<u32>(set, family);
  store<u32>(set, 0, COUNT);
  store<u32>(set, capacity, CAPACITY);
  store<u32>(set, 0, CAPACITY + 4);
  return set;
}

export function freeSet(set: usize): void {
  if (set != 0) free(set, <u32>ENTRIES + load<u32>(set, CAPACITY) * ENTRY_BYTES);
}

/** A copy without spare room; 0 when there is no memory. */
export function copySet(set: usize): usize {
  const count = countOf(set);
  const copy = createSet(familyOf(set), count);
  if (copy == 0) return 0;
  memory.copy(entryAt(copy, 0), entryAt(set, 0), count * ENTRY_BYTES);
  store<u32>(copy, count, COUNT);
  return copy;
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

function firstBelow(a: usize, b: usize): bool {
  return less(firstHiOf(a), firstLoOf(a), firstHiOf(b), firstLoOf(b));
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
  for (let index: u32 = 1; index < countOf(set); index++) {
    if (firstBelow(entryAt(set, index), entryAt(set, index - 1))) return false;
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
  const hi = lastHiOf(entry);
  const lo = lastLoOf(entry);
  if (!less(hi, lo, firstHiOf(next), firstLoOf(next))) return true;
  return addHi(hi, lo, 0, 1) == firstHiOf(next) && lo + 1 == firstLoOf(next);
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
      if (less(lastHiOf(entry), lastLoOf(entry), lastHiOf(next), lastLoOf(next)))
        memory.copy(entry + LAST, next + LAST, 16);
    } else {
      memory.copy(entryAt(set, kept), next, BEFORE);
      kept++;
    }
  }
  store<u32>(set, kept, COUNT);
  total(set);
}

/** Sets the running totals of ranges that are in order. */
function total(set: usize): void {
  let hi: u64 = 0;
  let lo: u64 = 0;
  for (let index: u32 = 0; index < countOf(set); index++) {
    const entry = entryAt(set, index);
    store<u64>(entry, hi, BEFORE);
    store<u64>(entry, lo, BEFORE + LO);
    const lengthLo = lastLoOf(entry) - firstLoOf(entry) + 1;
    const lengthHi = subHi(lastHiOf(entry), lastLoOf(entry), firstHiOf(entry), firstLoOf(entry)) + u64(lengthLo == 0);
    hi = addHi(hi, lo, lengthHi, lengthLo);
    lo = lo + lengthLo;
  }
}

/** High half of the number of addresses, modulo 2^128: 0 for a set that is not empty means 2^128. */
export function sizeHi(set: usize): u64 {
  const count = countOf(set);
  if (count == 0) return 0;
  const entry = entryAt(set, count - 1);
  const lengthHi = subHi(lastHiOf(entry), lastLoOf(entry), firstHiOf(entry), firstLoOf(entry));
  const lengthLo = lastLoOf(entry) - firstLoOf(entry);
  const hi = addHi(beforeHiOf(entry), beforeLoOf(entry), lengthHi, lengthLo);
  return hi + u64(beforeLoOf(entry) + lengthLo == ~(<u64>0));
}

/** Low half of the number of addresses. */
export function sizeLo(set: usize): u64 {
  const count = countOf(set);
  if (count == 0) return 0;
  const entry = entryAt(set, count - 1);
  return beforeLoOf(entry) + (lastLoOf(entry) - firstLoOf(entry)) + 1;
}

/** Index of the last entry whose 128-bit field at `field` is not above the number; NONE when all are. */
function lastNotAbove(set: usize, field: usize, hi: u64, lo: u64): i32 {
  let low: u32 = 0;
  let high = countOf(set);
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entryAt(set, middle) + field;
    if (less(hi, lo, load<u64>(entry), load<u64>(entry, LO))) high = middle;
    else low = middle + 1;
  }
  return low == 0 ? NONE : <i32>low - 1;
}

/** Index of the entry at or before the address: the last whose first address is not above it; NONE when all are. */
export function findAtOrBefore(set: usize, hi: u64, lo: u64): i32 {
  return lastNotAbove(set, FIRST, hi, lo);
}

/** The entry that holds the address; 0 when none does. */
export function findEntry(set: usize, hi: u64, lo: u64): usize {
  const index = lastNotAbove(set, FIRST, hi, lo);
  if (index < 0) return 0;
  const entry = entryAt(set, index);
  return less(lastHiOf(entry), lastLoOf(entry), hi, lo) ? 0 : entry;
}

/** The entry that holds the ordinal, which is below the size of the set. */
export function findOrdinalEntry(set: usize, hi: u64, lo: u64): usize {
  return entryAt(set, lastNotAbove(set, BEFORE, hi, lo));
}

/** The addresses of both sets; 0 when there is no memory. */
export function union(a: usize, b: usize): usize {
  const set = createSet(familyOf(a), countOf(a) + countOf(b));
  if (set == 0) return 0;
  memory.copy(entryAt(set, 0), entryAt(a, 0), countOf(a) * ENTRY_BYTES);
  memory.copy(entryAt(set, countOf(a)), entryAt(b, 0), countOf(b) * ENTRY_BYTES);
  store<u32>(set, countOf(a) + countOf(b), COUNT);
  normalise(set);
  return set;
}

/** The addresses that are in both sets; 0 when there is no memory. */
export function intersect(a: usize, b: usize): usize {
  const set = createSet(familyOf(a), countOf(a) + countOf(b));
  if (set == 0) return 0;
  let i: u32 = 0;
  let j: u32 = 0;
  while (i < countOf(a) && j < countOf(b)) {
    const x = entryAt(a, i);
    const y = entryAt(b, j);
    const start = firstBelow(x, y) ? y : x;
    const xEndsFirst = less(lastHiOf(x), lastLoOf(x), lastHiOf(y), lastLoOf(y));
    const end = xEndsFirst ? x : y;
    if (!less(lastHiOf(end), lastLoOf(end), firstHiOf(start), firstLoOf(start))) {
      push(set, firstHiOf(start), firstLoOf(start), lastHiOf(end), lastLoOf(end));
    }
    if (xEndsFirst) i++;
    else j++;
  }
  total(set);
  return set;
}

/** The addresses of the family that are not in the set; 0 when there is no memory. */
export function complement(a: usize): usize {
  const family = familyOf(a);
  const set = createSet(family, countOf(a) + 1);
  if (set == 0) return 0;
  let hi: u64 = 0;
  let lo: u64 = 0;
  for (let index: u32 = 0; index < countOf(a); index++) {
    const entry = entryAt(a, index);
    const firstHi = firstHiOf(entry);
    const firstLo = firstLoOf(entry);
    if (less(hi, lo, firstHi, firstLo)) push(set, hi, lo, subHi(firstHi, firstLo, 0, 1), firstLo - 1);
    hi = lastHiOf(entry);
    lo = lastLoOf(entry);
    if (hi == lastHi(family) && lo == lastLo(family)) {
      total(set);
      return set;
    }
    hi = addHi(hi, lo, 0, 1);
    lo = lo + 1;
  }
  push(set, hi, lo, lastHi(family), lastLo(family));
  total(set);
  return set;
}

/** The addresses of `a` that are not in `b`; 0 when there is no memory. */
export function subtract(a: usize, b: usize): usize {
  const others = complement(b);
  if (others == 0) return 0;
  const set = intersect(a, others);
  freeSet(others);
  return set;
}

/** Whether the sets share an address. */
export function overlaps(a: usize, b: usize): bool {
  let i: u32 = 0;
  let j: u32 = 0;
  while (i < countOf(a) && j < countOf(b)) {
    const x = entryAt(a, i);
    const y = entryAt(b, j);
    if (less(lastHiOf(x), lastLoOf(x), firstHiOf(y), firstLoOf(y))) i++;
    else if (less(lastHiOf(y), lastLoOf(y), firstHiOf(x), firstLoOf(x))) j++;
    else return true;
  }
  return false;
}
