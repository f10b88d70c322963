/**
 * Prefix (CIDR) arithmetic on 128-bit numbers.
 * Called by the ABI. Results go to the WIDE registers; the length is valid for the family.
 * Effects: none but the WIDE registers.
 */
import { NONE, OK, OUTSIDE, WIDE_HI, WIDE_LO } from "../abi";
import { addHi, bitsOf, lastHi, lastLo, onesHi, onesLo, shiftHi, shiftLo } from "./u128";

/** The lowest address; of a shorter length, that is the supernet. */
export const FIRST_OF: u32 = 0;
export const LAST_OF: u32 = 1;
/** The network mask: ones, then zeros. */
export const MASK_OF: u32 = 2;
/** The first address after the prefix. */
export const NEXT_OF: u32 = 3;

/** One of the four results about the prefix of that length that holds the address: OK, or NONE after the last. */
export function prefixOf(operation: u32, family: u32, hi: u64, lo: u64, length: u32): i32 {
  const hostHi = onesHi(bitsOf(family) - length);
  const hostLo = onesLo(bitsOf(family) - length);
  let high = hi | hostHi;
  let low = lo | hostLo;
  if (operation == MASK_OF) {
    high = lastHi(family);
    low = lastLo(family);
  } else if (operation == NEXT_OF) {
    if (high == lastHi(family) && low == lastLo(family)) return NONE;
    high = addHi(high, low, 0, 1);
    low = low + 1;
  }
  store<u64>(WIDE_HI, operation == LAST_OF ? high : high & ~hostHi);
  store<u64>(WIDE_LO, operation == LAST_OF ? low : low & ~hostLo);
  return OK;
}

/**
 * The first address of part `index` of the prefix, when it is cut into prefixes of length `part`; OUTSIDE past the
 * last.
 */
export function prefixPart(family: u32, hi: u64, lo: u64, length: u32, part: u32, index: u32): i32 {
  const bits = part - length;
  if (bits < 32 && index >>> bits != 0) return OUTSIDE;
  prefixOf(FIRST_OF, family, hi, lo, length);
  const shift = bitsOf(family) - part;
  store<u64>(WIDE_HI, load<u64>(WIDE_HI) | shiftHi(index, shift));
  store<u64>(WIDE_LO, load<u64>(WIDE_LO) | shiftLo(index, shift));
  return OK;
}

/** Length of the longest prefix that holds both addresses. */
export function commonLength(family: u32, ahi: u64, alo: u64, bhi: u64, blo: u64): u32 {
  const hi = ahi ^ bhi;
  const zeros = <u32>(hi != 0 ? clz<u64>(hi) : 64 + clz<u64>(alo ^ blo));
  return zeros - (128 - bitsOf(family));
}
