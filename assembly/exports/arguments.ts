/**
 * Checks of arguments, and the address at the start of the exchange buffer.
 * Effects: none, except giveAddress.
 */
import {
  BAD_FAMILY,
  BAD_HANDLE,
  KIND_POOL,
  KIND_SET,
  MAX_RANGES,
  NO_MEMORY,
  OK,
  OVER_CEILING,
  SHORT_EXCHANGE,
  WIDE_HI,
  WIDE_LO,
} from "../abi";
import { exchangeAt, holds } from "../memory/exchange";
import { name, reserveHandle, resolve } from "../memory/handles";
import { readHi, readLo, widthOf, writeAddress } from "../numbers/u128";
import { poolFamily } from "../pools/pool";
import { countOf, familyOf, freeSet } from "../sets/range-set";

export function poolOf(handle: i32): usize {
  return resolve(handle, KIND_POOL);
}

export function setOf(handle: i32): usize {
  return resolve(handle, KIND_SET);
}

/** OK when both handles are live sets of one family. */
export function checkPair(a: i32, b: i32): i32 {
  const x = setOf(a);
  const y = setOf(b);
  if (x == 0 || y == 0) return BAD_HANDLE;
  return familyOf(x) == familyOf(y) ? OK : BAD_FAMILY;
}

/** OK when the handle is a live set and the exchange buffer holds `count` addresses of its family. */
export function checkMembers(handle: i32, count: i32): i32 {
  const set = setOf(handle);
  if (set == 0) return BAD_HANDLE;
  return holds(count, widthOf(familyOf(set))) ? OK : SHORT_EXCHANGE;
}

/** The handle of a new set, or NO_MEMORY when it is 0; too large a set is freed again. */
export function nameSet(set: usize): i32 {
  if (set == 0) return NO_MEMORY;
  const status = countOf(set) > MAX_RANGES ? OVER_CEILING : reserveHandle();
  if (status == OK) return name(set, KIND_SET);
  freeSet(set);
  return status;
}

/** High half of item `index` of the addresses in the exchange buffer. */
export function givenHi(family: u32, index: u32): u64 {
  return readHi(family, exchangeAt() + index * widthOf(family));
}

/** Low half of item `index` of the addresses in the exchange buffer. */
export function givenLo(family: u32, index: u32): u64 {
  return readLo(family, exchangeAt() + index * widthOf(family));
}

/** Writes the WIDE registers to the exchange buffer, which holds an address of the family. */
export function giveAddress(family: u32): void {
  writeAddress(family, exchangeAt(), load<u64>(WIDE_HI), load<u64>(WIDE_LO));
}
