/**
 * Live edits: a pool of another shape with the used marks of the old one, wherever the address is in both.
 * Effects: linear memory; may grow it.
 */
import { MAX_WINDOW, OK, OUTSIDE, WIDE_HI, WIDE_LO } from "../abi";
import { USED, windowOf } from "../bitmap/bitmap";
import { findUnused, findUsed } from "../bitmap/bitmap-search";
import { addHi, less } from "../numbers/u128";
import { endOf, entryAt, findAtOrBefore, firstHiOf, firstLoOf, lastHiOf, lastLoOf, nextEntry } from "../sets/range-set";
import { compact, freedAt, freedCount, pushFreed } from "./freed";
import { CLAIM, operate } from "./mark";
import {
  addressOf,
  bitmapOf,
  cursorOf,
  endOfRange,
  freedOf,
  locate,
  rangesOf,
  setAddresses,
  setCursor,
  sparseOf,
  trackFreed,
} from "./pool";
import { sparseCapacity, sparseNext, sparseSlot } from "./sparse-set";

/** Marks the addresses of a run that lies inside one range of the pool, `length` + 1 of them. */
function markInside(pool: usize, hi: u64, lo: u64, length: u32): i32 {
  const marked = setAddresses(pool, hi, lo, 0, length, USED);
  if (marked < 0) return marked;
  for (let done = <u32>marked; done <= length; done++) {
    const status = operate(pool, CLAIM, addHi(hi, lo, 0, done), lo + <u64>done);
    if (status < 0) return status;
  }
  return OK;
}

/** Marks those addresses of a run, `length` + 1 of them, that lie in the pool's ranges. */
function markRun(pool: usize, hi: u64, lo: u64, length: u32): i32 {
  const ranges = rangesOf(pool);
  const endHi = addHi(hi, lo, 0, length);
  const endLo = lo + <u64>length;
  const end = endOf(ranges);
  for (let entry = max(findAtOrBefore(ranges, hi, lo), entryAt(ranges, 0)); entry < end; entry = nextEntry(entry)) {
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
  for (let index = sparseNext(sparse, 0); index < sparseCapacity(sparse); index = sparseNext(sparse, index + 1)) {
    const slot = sparseSlot(sparse, index);
    addressOf(from, load<u64>(slot), load<u64>(slot, 8));
    const status = operate(to, CLAIM, load<u64>(WIDE_HI), load<u64>(WIDE_LO));
    if (status < 0 && status != OUTSIDE) return status;
  }
  return OK;
}

/** Carries the order of freed ordinals over; the old ring loses only entries that no longer count. */
function copyFreed(from: usize, to: usize): i32 {
  const freed = freedOf(from);
  if (freed == 0) return OK;
  const status = trackFreed(to);
  if (status != OK) return status;
  compact(freed, bitmapOf(from), MAX_WINDOW);
  for (let index: u32 = 0; index < freedCount(freed); index++) {
    addressOf(from, 0, freedAt(freed, index));
    const ordinal = locate(to, load<u64>(WIDE_HI), load<u64>(WIDE_LO));
    if (ordinal >= 0) pushFreed(freedOf(to), bitmapOf(to), <u32>ordinal);
  }
  return OK;
}

/** Lets round robin go on at the same address, or from the start when that is gone. */
function copyCursor(from: usize, to: usize): void {
  if (cursorOf(from) >= windowOf(bitmapOf(from))) return;
  addressOf(from, 0, cursorOf(from));
  setCursor(to, <u32>max<i32>(0, locate(to, load<u64>(WIDE_HI), load<u64>(WIDE_LO))));
}

/** Copies the used addresses and the policies' state of `from` to `to`: same family, nothing used. */
export function copyState(from: usize, to: usize): i32 {
  let status = copyWindow(from, to);
  if (status == OK) status = copySparse(from, to);
  if (status == OK) status = copyFreed(from, to);
  if (status == OK) copyCursor(from, to);
  return status;
}
