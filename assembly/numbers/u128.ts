/**
 * 128-bit unsigned numbers as pairs (hi, lo), and addresses as big-endian bytes.
 * An IPv4 address is the pair (0, value). The low half of a sum or difference is plain 64-bit arithmetic.
 * Effects: none, except writeAddress.
 */

/** a < b */
export function less(ahi: u64, alo: u64, bhi: u64, blo: u64): bool {
  return ahi != bhi ? ahi < bhi : alo < blo;
}

/** a < b, for numbers in memory: hi, then lo. */
export function lessAt(a: usize, b: usize): bool {
  return less(load<u64>(a), load<u64>(a, 8), load<u64>(b), load<u64>(b, 8));
}

/** High half of a + b, modulo 2^128. */
export function addHi(ahi: u64, alo: u64, bhi: u64, blo: u64): u64 {
  return ahi + bhi + u64(alo + blo < alo);
}

/** High half of a - b, modulo 2^128. */
export function subHi(ahi: u64, alo: u64, bhi: u64, blo: u64): u64 {
  return ahi - bhi - u64(alo < blo);
}

/** Bytes of an address of the family. */
export function widthOf(family: u32): u32 {
  return family == 4 ? 4 : 16;
}

export function isFamily(family: u32): bool {
  return family == 4 || family == 6;
}

/** High half of the last address of the family. */
export function lastHi(family: u32): u64 {
  return family == 4 ? 0 : ~(<u64>0);
}

/** Low half of the last address of the family. */
export function lastLo(family: u32): u64 {
  return family == 4 ? 0xffffffff : ~(<u64>0);
}

/**
 * The number in eight big-endian bytes. Two loads of four: a load of eight waits for the cache when a host has just
 * written four of them.
 */
export function readBig(at: usize): u64 {
  return ((<u64>bswap<u32>(load<u32>(at))) << 32) | bswap<u32>(load<u32>(at, 4));
}

/** Writes the number as eight big-endian bytes. */
function writeBig(at: usize, value: u64): void {
  store<u64>(at, value);
  store<u64>(at, readBig(at));
}

/** High half of the address at `at`. */
export function readHi(family: u32, at: usize): u64 {
  return family == 4 ? 0 : readBig(at);
}

/** Low half of the address at `at`. */
export function readLo(family: u32, at: usize): u64 {
  return family == 4 ? <u64>bswap<u32>(load<u32>(at)) : readBig(at + 8);
}

/** Writes an address in the width of its family, big-endian. */
export function writeAddress(family: u32, at: usize, hi: u64, lo: u64): void {
  if (family == 4) {
    store<u32>(at, bswap<u32>(<u32>lo));
  } else {
    writeBig(at, hi);
    writeBig(at + 8, lo);
  }
}

/** Bits of an address of the family. */
export function bitsOf(family: u32): u32 {
  return family == 4 ? 32 : 128;
}

/** High half of 2^count - 1, count 0 to 128. */
export function onesHi(count: u32): u64 {
  if (count <= 64) return 0;
  return ~(<u64>0) >> (128 - count);
}

/** Low half of 2^count - 1, count 0 to 128. */
export function onesLo(count: u32): u64 {
  if (count == 0) return 0;
  return count >= 64 ? ~(<u64>0) : ~(<u64>0) >> (64 - count);
}

/** Number of zero bits at the end, 128 for 0. */
export function trailingZeros(hi: u64, lo: u64): u32 {
  return <u32>(lo != 0 ? ctz<u64>(lo) : 64 + ctz<u64>(hi));
}

/** High half of a 32-bit number shifted left by 0 to 128 bits. */
export function shiftHi(value: u32, by: u32): u64 {
  if (by >= 128 || by == 0) return 0;
  return by >= 64 ? (<u64>value) << (by - 64) : <u64>value >> (64 - by);
}

/** Low half of a 32-bit number shifted left by 0 to 128 bits. */
export function shiftLo(value: u32, by: u32): u64 {
  return by >= 64 ? 0 : (<u64>value) << by;
}
