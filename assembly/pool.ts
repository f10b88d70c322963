/**
 * Pools: which addresses of a range set are used. Ordinals count the addresses of the ranges from 0; the first
 * 2^24 (the window) are bits, used ordinals beyond it stand in a sparse set. Masked addresses (excluded,
 * reserved, gateway ...) keep their ordinals, so that masks come and go without losing what is used.
 * Called by the ABI and the policies.
 * Effects: linear memory; may grow it.
 *
 *  pool:  family u32 │ bytes u32 │ ranges │ masks │ sparse │ cursor u32 │ freed │ sparse masked u32 │ bitmap ...
 */
import { BAD_FAMILY, MAX_SPARSE, MAX_WINDOW, NO_MEMORY, OK, OUTSIDE, OVER_CEILING, WIDE_HI, WIDE_LO } from "./abi";
import {
  bitmapBytes,
  claimOrdinal,
  freeChunks,
  initBitmap,
  isMasked,
  isUsed,
  MASKED,
  releaseOrdinal,
  setRun,
  windowOf,
} from "./bitmap";
import { allocateZeroed, free } from "./heap";
import {
  beforeHiOf,
  beforeLoOf,
  copySet,
  countOf,
  entryAt,
  familyOf,
  findEntry,
  findOrdinalEntry,
  firstHiOf,
  firstLoOf,
  freeSet,
  intersect,
  lastHiOf,
  lastLoOf,
  sizeHi,
  sizeLo,
} from "./range-set";
import { freeSparse, sparseAdd, sparseCount, sparseHas, sparseRemove, sparseReserve } from "./sparse-set";
import { addHi, subHi } from "./u128";

const BYTES: usize = 4;
const RANGES: usize = 8;
const MASKS: usize = 12;
const SPARSE: usize = 16;
const CURSOR: usize = 20;
const FREED: usize = 24;
const SPARSE_MASKED: usize = 28;
const BITMAP: usize = 32;

/** What {@link locate} answers for an ordinal past the window; the number is in the WIDE registers. */
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
export function bitmapOf(pool: usize): usize {
  return pool + BITMAP;
}
/** Where round robin goes on: an ordinal, perhaps one past the window. */
export function cursorOf(pool: usize): u32 {
  return load<u32>(pool, CURSOR);
}
export function setCursor(pool: usize, ordinal: u32): void {
  store<u32>(pool, ordinal, CURSOR);
}
/** Used addresses beyond the window that are masked. */
export function sparseMaskedOf(pool: usize): u32 {
  return load<u32>(pool, SPARSE_MASKED);
}

function windowFor(ranges: usize): u32 {
  if (countOf(ranges) == 0) return 0;
  const hi = sizeHi(ranges);
  const lo = sizeLo(ranges);
  const wide = hi != 0 || lo == 0 || lo > <u64>MAX_WINDOW;
  return wide ? MAX_WINDOW : <u32>lo;
}

/** The window's share of the masks, as bits. */
function maskBits(pool: usize): i32 {
  const masks = masksOf(pool);
  for (let index: u32 = 0; index < countOf(masks); index++) {
    const mask = entryAt(masks, index);
    const first = locate(pool, firstHiOf(mask), firstLoOf(mask));
    if (first < 0) break;
    const length = lastLoOf(mask) - firstLoOf(mask);
    const lengthHi = subHi(lastHiOf(mask), lastLoOf(mask), firstHiOf(mask), firstLoOf(mask));
    const room = windowOf(bitmapOf(pool)) - 1 - <u32>first;
    const span = lengthHi != 0 || length > <u64>room ? room : <u32>length;
    const status = setRun(bitmapOf(pool), <u32>first, <u32>first + span, MASKED);
    if (status != OK) return status;
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
  const inside = intersect(masks, ranges);
  if (inside != 0) store<u32>(pool, <u32>copySet(inside), MASKS);
  freeSet(inside);
  if (rangesOf(pool) == 0 || masksOf(pool) == 0) status = NO_MEMORY;
  if (status == OK) status = maskBits(pool);
  if (status == OK) return pool;
  freePool(pool);
  return 0;
}

export function freePool(pool: usize): void {
  freeSet(rangesOf(pool));
  freeSet(masksOf(pool));
  freeSparse(sparseOf(pool));
  freeChunks(bitmapOf(pool));
  free(pool, load<u32>(pool, BYTES));
}

/** The ordinal of an address when it is in the window, else BEYOND (WIDE is set) or OUTSIDE. */
export function locate(pool: usize, hi: u64, lo: u64): i32 {
  const entry = findEntry(rangesOf(pool), hi, lo);
  if (entry == 0) return OUTSIDE;
  const offsetLo = lo - firstLoOf(entry);
  const offsetHi = subHi(hi, lo, firstHiOf(entry), firstLoOf(entry));
  const ordinalHi = addHi(beforeHiOf(entry), beforeLoOf(entry), offsetHi, offsetLo);
  const ordinalLo = beforeLoOf(entry) + offsetLo;
  if (ordinalHi == 0 && ordinalLo < <u64>windowOf(bitmapOf(pool))) return <i32>ordinalLo;
  store<u64>(WIDE_HI, ordinalHi);
  store<u64>(WIDE_LO, ordinalLo);
  return BEYOND;
}

/** Puts the address of an ordinal, which is below the size of the ranges, into the WIDE registers. */
export function addressOf(pool: usize, ordinalHi: u64, ordinalLo: u64): void {
  const entry = findOrdinalEntry(rangesOf(pool), ordinalHi, ordinalLo);
  const offsetLo = ordinalLo - beforeLoOf(entry);
  const offsetHi = subHi(ordinalHi, ordinalLo, beforeHiOf(entry), beforeLoOf(entry));
  store<u64>(WIDE_HI, addHi(firstHiOf(entry), firstLoOf(entry), offsetHi, offsetLo));
  store<u64>(WIDE_LO, firstLoOf(entry) + offsetLo);
}

/** Whether the address lies in the masks. */
export function isMaskedAddress(pool: usize, hi: u64, lo: u64): bool {
  return findEntry(masksOf(pool), hi, lo) != 0;
}

/** Whether the address is in the ranges and not masked. */
export function contains(pool: usize, hi: u64, lo: u64): bool {
  const ordinal = locate(pool, hi, lo);
  if (ordinal >= 0) return !isMasked(bitmapOf(pool), <u32>ordinal);
  return ordinal == BEYOND && !isMaskedAddress(pool, hi, lo);
}

/** 1 used, 0 not, OUTSIDE. */
export function testAddress(pool: usize, hi: u64, lo: u64): i32 {
  const ordinal = locate(pool, hi, lo);
  if (ordinal >= 0) return i32(isUsed(bitmapOf(pool), <u32>ordinal));
  if (ordinal == OUTSIDE) return OUTSIDE;
  return i32(sparseHas(sparseOf(pool), load<u64>(WIDE_HI), load<u64>(WIDE_LO)));
}

/** Marks an address used, masked or not: 1 newly, 0 it was, OUTSIDE, NO_MEMORY or OVER_CEILING. */
export function claimAddress(pool: usize, hi: u64, lo: u64): i32 {
  const ordinal = locate(pool, hi, lo);
  if (ordinal >= 0) return claimOrdinal(bitmapOf(pool), <u32>ordinal);
  if (ordinal == OUTSIDE) return OUTSIDE;
  const wideHi = load<u64>(WIDE_HI);
  const wideLo = load<u64>(WIDE_LO);
  if (sparseHas(sparseOf(pool), wideHi, wideLo)) return 0;
  if (sparseCount(sparseOf(pool)) >= MAX_SPARSE) return OVER_CEILING;
  const sparse = sparseReserve(sparseOf(pool));
  if (sparse == 0) return NO_MEMORY;
  store<u32>(pool, <u32>sparse, SPARSE);
  sparseAdd(sparse, wideHi, wideLo);
  store<u32>(pool, sparseMaskedOf(pool) + u32(isMaskedAddress(pool, hi, lo)), SPARSE_MASKED);
  return 1;
}

/** Marks an address not used: 1 it was, 0 it was not, OUTSIDE. */
export function releaseAddress(pool: usize, hi: u64, lo: u64): i32 {
  const ordinal = locate(pool, hi, lo);
  if (ordinal >= 0) return releaseOrdinal(bitmapOf(pool), <u32>ordinal);
  if (ordinal == OUTSIDE) return OUTSIDE;
  const wideHi = load<u64>(WIDE_HI);
  const wideLo = load<u64>(WIDE_LO);
  if (!sparseHas(sparseOf(pool), wideHi, wideLo)) return 0;
  sparseRemove(sparseOf(pool), wideHi, wideLo);
  store<u32>(pool, sparseMaskedOf(pool) - u32(isMaskedAddress(pool, hi, lo)), SPARSE_MASKED);
  return 1;
}
