/**
 * Numbers of up to 64 bits in groups of seven, lowest first (LEB128): written at an address, read from a cursor that
 * never passes its end.
 * Effects: the cursor READ_AT, the register WIDE_LO; the bytes written.
 */
import { READ_AT, READ_END, WIDE_LO } from "../abi";

/** Writes the number: the address after it. */
export function writeVarint(at: usize, value: u64): usize {
  let next = at;
  let rest = value;
  while (rest > 127) {
    store<u8>(next, <u8>(rest | 128));
    rest >>= 7;
    next++;
  }
  store<u8>(next, <u8>rest);
  return next + 1;
}

/** Starts reading `length` bytes at `start`. */
export function startReading(start: usize, length: u32): void {
  store<u32>(READ_AT, <u32>start);
  store<u32>(READ_END, <u32>start + length);
}

export function bytesLeft(): u32 {
  return load<u32>(READ_END) - load<u32>(READ_AT);
}

/** Passes over `length` bytes, which are there: the address where they start. */
export function readBytes(length: u32): usize {
  const at = load<u32>(READ_AT);
  store<u32>(READ_AT, at + length);
  return at;
}

/** Reads a number into WIDE_LO; false when the bytes end first, or it takes more than ten. Bits past 64 are lost. */
export function readVarint(): bool {
  let value: u64 = 0;
  for (let shift: u64 = 0; shift < 70; shift += 7) {
    if (bytesLeft() == 0) return false;
    const byte = <u64>load<u8>(readBytes(1));
    value |= (byte & 127) << shift;
    store<u64>(WIDE_LO, value);
    if (byte < 128) return true;
  }
  return false;
}

/** Reads a number; 2^32 - 1 for a damaged one, or one above 2^32 - 2. */
export function readSmall(): u32 {
  return readVarint() ? <u32>min<u64>(load<u64>(WIDE_LO), 0xffffffff) : 0xffffffff;
}
