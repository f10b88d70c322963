/**
 * Live edits: a pool of another shape with the used marks of the old one, wherever the address is in both.
 * Called by the ABI. The old pool is untouched, so a failure changes nothing.
 * Effects: linear memory; may grow it.
 */
import { OK, WIDE_HI, WIDE_LO } from "./abi";
import { findUnused, findUsed, setRun, USED, windowOf } from "./bitmap";
import { addressOf, BEYOND, bitmapOf, claimAddress, createPool, freePool, locate, rangesOf, sparseOf } from "./pool";
import {
  beforeHiOf,
  beforeLoOf,
  countOf,
  entryAt,
  findAtOrBefore,
  findOrdinalEntry,
  firstHiOf,
  firstLoOf,
  lastHiOf,
  lastLoOf,
} from "./range-set";
import { sparseCapacity, sparseSlot } from "./sparse-set";
import { addHi, less, subHi } from "./u128";

/** Marks the addresses of a run that lies inside one range of the pool, `length` + 1 of them. */
function markInside(pool: usize, hi: u64, lo: u64, length: u32): i32 {
  let done: u32 = 0;
  const first = locate(pool, hi, lo);
  if (first >= 0) {
    const room = windowOf(bitmapOf(pool)) - 1 - <u32>first;
    const span = min<u32>(room, length);
    const status = setRun(bitmapOf(pool), <u32>first, <u32>first + span, USED);
    if (status != OK) return status;
    done = span + 1;
  }
  for (; done <= length; done++) {
    const status = claimAddress(pool, addHi(hi, lo, 0, done), lo + <u64>done);
    if (status < 0) return status;
  }
  return OK;
}

/** Marks those addresses of a run, `length` + 1 of them, that lie in the pool's ranges. */
function markRun(pool: usize, hi: u64, lo: u64, length: u32): i32 {
  const ranges = rangesOf(pool);
  const endHi = addHi(hi, lo, 0, length);
  const endLo = lo + <u64>length;
  for (let index = <u32>max<i32>(0, findAtOrBefore(ranges, hi, lo)); index < countOf(ranges); index++) {
    const entry = entryAt(ranges, index);
    if (less(endHi, endLo, firstHiOf(entry), firstLoOf(entry))) break;
    if (less(lastHiOf(entry), lastLoOf(entry), hi, lo)) continue;
    const startsInside = less(firstHiOf(entry), firstLoOf(entry), hi, lo);
    const endsInside = less(endHi, endLo, lastHiOf(entry), lastLoOf(entry));
    const startHi = startsInside ? hi : firstHiOf(entry);
    const startLo = startsInside ? lo : firstLoOf(entry);
    const span = (endsInside ? endLo : lastLoOf(entry)) - startLo;
    const status = markInside(pool, startHi, startLo, <u32>span);
    if (status != OK) return status;
  }
  return OK;
}

/** Ordinals from `first`, which is below the window, to the end of its range, at most to `last`: that end. */
export function endOfRange(pool: usize, first: u32, last: u32): u32 {
  const entry = findOrdinalEntry(rangesOf(pool), 0, first);
  const lengthHi = subHi(lastHiOf(entry), lastLoOf(entry), firstHiOf(entry), firstLoOf(entry));
  const lengthLo = lastLoOf(entry) - firstLoOf(entry);
  const endHi = addHi(beforeHiOf(entry), beforeLoOf(entry), lengthHi, lengthLo);
  const endLo = beforeLoOf(entry) + lengthLo;
  return less(endHi, endLo, 0, last) ? <u32>endLo : last;
}

/** Carries the used bits of the old pool's window over. */
function copyWindow(from: usize, to: usize): i32 {
  const bitmap = bitmapOf(from);
  const window = windowOf(bitmap);
  let first = findUsed(bitmap, 0);
  while (first < window) {
    const end = findUnused(bitmap, first) - 1;
    while (first <= end) {
      const last = endOfRange(from, first, end);
      addressOf(from, 0, first);
      const status = markRun(to, load<u64>(WIDE_HI), load<u64>(WIDE_LO), last - first);
      if (status != OK) return status;
      first = last + 1;
    }
    first = findUsed(bitmap, first);
  }
  return OK;
}

/** Carries the used ordinals beyond the old pool's window over. */
function copySparse(from: usize, to: usize): i32 {
  const sparse = sparseOf(from);
  for (let index: u32 = 0; index < sparseCapacity(sparse); index++) {
    const slot = sparseSlot(sparse, index);
    const hi = load<u64>(slot);
    const lo = load<u64>(slot, 8);
    if ((hi | lo) == 0) continue;
    addressOf(from, hi, lo);
    const status = markRun(to, load<u64>(WIDE_HI), load<u64>(WIDE_LO), 0);
    if (status != OK) return status;
  }
  return OK;
}

/** Copies what is used in `from` to `to`, a pool of the same family with nothing used. */
export function copyUsed(from: usize, to: usize): i32 {
  const status = copyWindow(from, to);
  return status == OK ? copySparse(from, to) : status;
}
