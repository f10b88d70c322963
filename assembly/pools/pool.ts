/**
 * Pools: the used addresses of a range set. Ordinals count the addresses of the ranges from 0; the first 2^24 (the
 * window) are bits, used ordinals beyond it stand in a sparse set. Masked addresses (excluded, reserved, gateway ...)
 * keep their ordinals, so that masks come and go without losing used addresses.
 * Effects: linear memory; may grow it.
 *
 * pool: family u32 │ bytes u32 │ ranges │ masks │ sparse │ cursor u32 │ freed │ sparse masked u32 │ bitmap ...
 */
import { MAX_WINDOW, NO_MEMORY, OK, OUTSIDE, WIDE_HI, WIDE_LO } from "../abi";
import { bitmapBytes, freeBitmap, initBitmap, MASKED, setRun, windowOf } from "../bitmap/bitmap";
import { allocateZeroed, free } from "../memory/heap";
import { addHi, less, subHi } from "../numbers/u128";
import {
  beforeHiOf,
  beforeLoOf,
  copySet,
  countOf,
  endOf,
  entryAt,
  familyOf,
  findEntry,
  findOrdinalEntry,
  firstHiOf,
  firstLoOf,
  freeSet,
  lastHiOf,
  lastLoOf,
  nextEntry,
  sizeHi,
  sizeLo,
} from "../sets/range-set";
import { intersect } from "../sets/set-algebra";
import { createFreed, dropFreed } from "./freed";
import { freeSparse } from "./sparse-set";

const BYTES: usize = 4;
const RANGES: usize = 8;
const MASKS: usize = 12;
const SPARSE: usize = 16;
const CURSOR: usize = 20;
const FREED: usize = 24;
const SPARSE_MASKED: usize = 28;
const BITMAP: usize = 32;

/** The answer of {@link locate} for an ordinal past the window; the number is in the WIDE registers. */
export const BEYOND: i32 = -100;

export function poolFamily(pool: usize): u32 {
  return load<u32>(pool);
}
export function rangesOf(pool: usize): usize {
  return load<u32>(pool, RANGES);
}
export function masksOf(pool: usize): usize {
  return load<u32>(pool, MASKS);
}
export function sparseOf(pool: usize): usize {
  return load<u32>(pool, SPARSE);
}
export function setSparse(pool: usize, sparse: usize): void {
  store<u32>(pool, <u32>sparse, SPARSE);
}
export function bitmapOf(pool: usize): usize {
  return pool + BITMAP;
}
/** Returns the place from which round robin goes on: an ordinal, perhaps one past the window. */
export function cursorOf(pool: usize): u32 {
  return load<u32>(pool, CURSOR);
}
export function setCursor(pool: usize, ordinal: u32): void {
  store<u32>(pool, ordinal, CURSOR);
}
/** The ring of freed ordinals; 0 when the pool does not track them. */
export function freedOf(pool: usize): usize {
  return load<u32>(pool, FREED);
}
/** Used addresses beyond the window that are masked. */
export function sparseMaskedOf(pool: usize): u32 {
  return load<u32>(pool, SPARSE_MASKED);
}
export function addSparseMasked(pool: usize, by: i32): void {
  store<u32>(pool, sparseMaskedOf(pool) + by, SPARSE_MASKED);
}

function windowFor(ranges: usize): u32 {
  if (countOf(ranges) == 0) return 0;
  const hi = sizeHi(ranges);
  const lo = sizeLo(ranges);
  const wide = hi != 0 || lo == 0 || lo > <u64>MAX_WINDOW;
  return wide ? MAX_WINDOW : <u32>lo;
}

/**
 * Sets the bits of an address and of `lengthHi, lengthLo` more after it, all in one range, as far as they lie in the
 * window: how many, or NO_MEMORY.
 */
export function setAddresses(pool: usize, hi: u64, lo: u64, lengthHi: u64, lengthLo: u64, plane: usize): i32 {
  const first = locate(pool, hi, lo);
  if (first < 0) return 0;
  const room = windowOf(bitmapOf(pool)) - 1 - <u32>first;
  const length = less(0, room, lengthHi, lengthLo) ? room : <u32>lengthLo;
  const status = setRun(bitmapOf(pool), <u32>first, <u32>first + length, plane);
  return status == OK ? <i32>length + 1 : status;
}

/** The window's share of the masks, as bits. */
function maskWindow(pool: usize): i32 {
  const masks = masksOf(pool);
  for (let mask = entryAt(masks, 0); mask < endOf(masks); mask = nextEntry(mask)) {
    const hi = firstHiOf(mask);
    const lo = firstLoOf(mask);
    const lengthHi = subHi(lastHiOf(mask), lastLoOf(mask), hi, lo);
    const done = setAddresses(pool, hi, lo, lengthHi, lastLoOf(mask) - lo, MASKED);
    if (done < 0) return done;
  }
  return OK;
}

/** A pool with nothing used. The sets stay the caller's. 0 when there is no memory. */
export function createPool(ranges: usize, masks: usize): usize {
  const window = windowFor(ranges);
  const bytes = <u32>BITMAP + bitmapBytes(window);
  const pool = allocateZeroed(bytes);
  if (pool == 0) return 0;
  store<u32>(pool, familyOf(ranges));
  store<u32>(pool, bytes, BYTES);
  let status = initBitmap(bitmapOf(pool), window);
  store<u32>(pool, <u32>copySet(ranges), RANGES);
  store<u32>(pool, <u32>intersect(masks, ranges), MASKS);
  if (rangesOf(pool) == 0 || masksOf(pool) == 0) status = NO_MEMORY;
  if (status == OK) status = maskWindow(pool);
  if (status == OK) return pool;
  freePool(pool);
  return 0;
}

export function freePool(pool: usize): void {
  freeSet(rangesOf(pool));
  freeSet(masksOf(pool));
  freeSparse(sparseOf(pool));
  dropFreed(freedOf(pool));
  freeBitmap(bitmapOf(pool));
  free(pool, load<u32>(pool, BYTES));
}

/**
 * Whether an ordinal, which is below the window or the size of the ranges, lies in the first range: most pools have
 * no other.
 */
function isInFirst(ranges: usize, ordinal: u64): bool {
  const next = entryAt(ranges, 1);
  return ordinal < beforeLoOf(next) || beforeHiOf(next) != 0;
}

/** The ordinal of an address when it is in the window, else BEYOND (WIDE is set) or OUTSIDE. */
export function locate(pool: usize, hi: u64, lo: u64): i32 {
  const ranges = rangesOf(pool);
  const window = <u64>windowOf(bitmapOf(pool));
  const first = entryAt(ranges, 0);
  const near = lo - firstLoOf(first);
  // Without ranges the window is empty. `near` wraps for an address before a range that crosses a multiple of 2^64.
  if (hi == firstHiOf(first) && near <= lo && near < window && isInFirst(ranges, near)) return <i32>near;
  const entry = findEntry(ranges, hi, lo);
  if (entry == 0) return OUTSIDE;
  const offsetHi = subHi(hi, lo, firstHiOf(entry), firstLoOf(entry));
  const offsetLo = lo - firstLoOf(entry);
  const ordinalHi = addHi(beforeHiOf(entry), beforeLoOf(entry), offsetHi, offsetLo);
  const ordinal = beforeLoOf(entry) + offsetLo;
  if (ordinalHi == 0 && ordinal < window) return <i32>ordinal;
  store<u64>(WIDE_HI, ordinalHi);
  store<u64>(WIDE_LO, ordinal);
  return BEYOND;
}

/** Puts the address of an ordinal, which is below the size of the ranges, into WIDE: the entry that holds it. */
export function addressOf(pool: usize, ordinalHi: u64, ordinalLo: u64): usize {
  const ranges = rangesOf(pool);
  const isFirst = ordinalHi == 0 && isInFirst(ranges, ordinalLo);
  const entry = isFirst ? entryAt(ranges, 0) : findOrdinalEntry(ranges, ordinalHi, ordinalLo);
  const offsetHi = subHi(ordinalHi, ordinalLo, beforeHiOf(entry), beforeLoOf(entry));
  const offsetLo = ordinalLo - beforeLoOf(entry);
  store<u64>(WIDE_HI, addHi(firstHiOf(entry), firstLoOf(entry), offsetHi, offsetLo));
  store<u64>(WIDE_LO, firstLoOf(entry) + offsetLo);
  return entry;
}

/** The last ordinal of the range that holds `first`, which is below the window, but at most `last`. */
export function endOfRange(pool: usize, first: u32, last: u32): u32 {
  const next = nextEntry(findOrdinalEntry(rangesOf(pool), 0, first));
  const end = beforeLoOf(next) - 1;
  return beforeHiOf(next) == 0 && end < <u64>last ? <u32>end : last;
}

/** Starts to track the order in which ordinals become free: OK or NO_MEMORY. */
export function trackFreed(pool: usize): i32 {
  if (freedOf(pool) != 0) return OK;
  const freed = createFreed(windowOf(bitmapOf(pool)));
  store<u32>(pool, <u32>freed, FREED);
  return freed == 0 ? NO_MEMORY : OK;
}
