/**
 * Hashed order over a pool of any size: the window's bits and, beyond it, the sparse set.
 * Effects: none but the WIDE registers.
 */
import { NONE, OK, WIDE_HI, WIDE_LO } from "../abi";
import { windowOf } from "../bitmap/bitmap";
import { findFree } from "../bitmap/bitmap-search";
import { addHi, less, onesHi, onesLo, subHi } from "../numbers/u128";
import { addressOf, bitmapOf, masksOf, rangesOf, sparseOf } from "../pools/pool";
import { sparseHas } from "../pools/sparse-set";
import { countOf, findEntry, lastHiOf, lastLoOf, sizeHi, sizeLo } from "../sets/range-set";

/** Past the masked addresses that hold the WIDE address, as an ordinal in WIDE; 0 when it is not masked. */
function skipMask(pool: usize, ordinalHi: u64, ordinalLo: u64): bool {
  const hi = load<u64>(WIDE_HI);
  const lo = load<u64>(WIDE_LO);
  const mask = findEntry(masksOf(pool), hi, lo);
  if (mask == 0) return false;
  const restHi = subHi(lastHiOf(mask), lastLoOf(mask), hi, lo);
  const restLo = lastLoOf(mask) - lo;
  const endHi = addHi(ordinalHi, ordinalLo, restHi, restLo);
  const endLo = ordinalLo + restLo;
  store<u64>(WIDE_HI, addHi(endHi, endLo, 0, 1));
  store<u64>(WIDE_LO, endLo + 1);
  return true;
}

/** Puts the first free address from the ordinal on, without wrapping, into WIDE: OK, or NONE. */
function findWideFrom(pool: usize, fromHi: u64, fromLo: u64): i32 {
  const window = windowOf(bitmapOf(pool));
  const ranges = rangesOf(pool);
  const lastHi = subHi(sizeHi(ranges), sizeLo(ranges), 0, 1);
  const lastLo = sizeLo(ranges) - 1;
  let hi = fromHi;
  let lo = fromLo;
  if (hi == 0 && lo < <u64>window) {
    const found = findFree(bitmapOf(pool), <u32>lo);
    if (found >= 0) {
      addressOf(pool, 0, found);
      return OK;
    }
    lo = window;
  }
  while (!less(lastHi, lastLo, hi, lo)) {
    addressOf(pool, hi, lo);
    if (skipMask(pool, hi, lo)) {
      hi = load<u64>(WIDE_HI);
      lo = load<u64>(WIDE_LO);
    } else if (sparseHas(sparseOf(pool), hi, lo)) {
      hi = addHi(hi, lo, 0, 1);
      lo = lo + 1;
    } else {
      return OK;
    }
    if ((hi | lo) == 0) break;
  }
  return NONE;
}

/**
 * Puts the first free address at or after an ordinal into WIDE, wrapping once. The ordinal is the seed's low bits, as
 * many as the largest ordinal has; from one that is too large, the size is taken away.
 */
export function findWide(pool: usize, seedHi: u64, seedLo: u64): i32 {
  const ranges = rangesOf(pool);
  if (countOf(ranges) == 0) return NONE;
  const lastHi = subHi(sizeHi(ranges), sizeLo(ranges), 0, 1);
  const lastLo = sizeLo(ranges) - 1;
  const bits = <u32>(lastHi != 0 ? 128 - clz<u64>(lastHi) : 64 - clz<u64>(lastLo));
  let hi = seedHi & onesHi(bits);
  let lo = seedLo & onesLo(bits);
  if (less(lastHi, lastLo, hi, lo)) {
    hi = subHi(hi, lo, sizeHi(ranges), sizeLo(ranges));
    lo = lo - sizeLo(ranges);
  }
  return findWideFrom(pool, hi, lo) == OK ? OK : findWideFrom(pool, 0, 0);
}
