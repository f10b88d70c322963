/**
 * Range sets as bytes in the exchange buffer: pairs of addresses in, pairs, prefixes and sizes out.
 * Effects: the exchange buffer; may grow memory.
 */
import { BAD_ARGUMENT, BAD_RANGE, OK } from "../abi";
import { exchangeAt, reserveExchange } from "../memory/exchange";
import {
  addHi,
  bitsOf,
  less,
  onesHi,
  onesLo,
  readHi,
  readLo,
  trailingZeros,
  widthOf,
  writeAddress,
} from "../numbers/u128";
import {
  countOf,
  endOf,
  entryAt,
  familyOf,
  findEntry,
  firstHiOf,
  firstLoOf,
  lastHiOf,
  lastLoOf,
  nextEntry,
  normalise,
  push,
  sizeHi,
  sizeLo,
} from "./range-set";

/** Bytes of a range: two addresses, or an address and the length of its prefix. */
export function itemBytes(family: u32, prefixes: bool): u32 {
  return widthOf(family) + (prefixes ? 1 : widthOf(family));
}

/**
 * Fills an empty set with `count` ranges in any order: BAD_RANGE when one is the wrong way round, BAD_ARGUMENT when a
 * prefix is too long. Host bits of prefixes are ignored.
 */
export function readRanges(set: usize, start: usize, count: u32, prefixes: bool): i32 {
  const family = familyOf(set);
  const width = widthOf(family);
  for (let index: u32 = 0; index < count; index++) {
    const at = start + index * itemBytes(family, prefixes);
    let hi = readHi(family, at);
    let lo = readLo(family, at);
    let endHi: u64;
    let endLo: u64;
    if (prefixes) {
      const host = bitsOf(family) - <u32>load<u8>(at + width);
      if (host > bitsOf(family)) return BAD_ARGUMENT;
      endHi = hi | onesHi(host);
      endLo = lo | onesLo(host);
      hi &= ~onesHi(host);
      lo &= ~onesLo(host);
    } else {
      endHi = readHi(family, at + width);
      endLo = readLo(family, at + width);
      if (less(endHi, endLo, hi, lo)) return BAD_RANGE;
    }
    push(set, hi, lo, endHi, endLo);
  }
  normalise(set);
  return OK;
}

/** Writes the ranges as pairs (first, last), ascending: their number, or a status. */
export function writeRanges(set: usize): i32 {
  const family = familyOf(set);
  const width = widthOf(family);
  const count = countOf(set);
  const status = reserveExchange(count * 2 * width);
  if (status < 0) return status;
  let at = exchangeAt();
  for (let entry = entryAt(set, 0); entry < endOf(set); entry = nextEntry(entry)) {
    writeAddress(family, at, firstHiOf(entry), firstLoOf(entry));
    writeAddress(family, at + width, lastHiOf(entry), lastLoOf(entry));
    at += 2 * width;
  }
  return <i32>count;
}

/** Writes the number of addresses at `at` as 17 bytes, big-endian: 2^128 needs 129 bits. */
export function writeSizeAt(set: usize, at: usize): void {
  const hi = sizeHi(set);
  const lo = sizeLo(set);
  store<u8>(at, u8(countOf(set) > 0 && (hi | lo) == 0));
  writeAddress(6, at + 1, hi, lo);
}

/** Writes the number of addresses to the exchange buffer: 17, its bytes, or a status. */
export function writeSize(set: usize): i32 {
  const status = reserveExchange(17);
  if (status < 0) return status;
  writeSizeAt(set, exchangeAt());
  return 17;
}

/** Host bits of the largest prefix that starts at the address and ends at or before `last`. */
function hostBits(family: u32, hi: u64, lo: u64, lastHi: u64, lastLo: u64): u32 {
  let bits = min<u32>(trailingZeros(hi, lo), bitsOf(family));
  while (less(lastHi, lastLo, hi | onesHi(bits), lo | onesLo(bits))) bits--;
  return bits;
}

/** Writes the prefixes of one range at item `written` and on: how many there are then, or a status. */
function writeRangePrefixes(family: u32, entry: usize, written: u32): i32 {
  const item = widthOf(family) + 1;
  let hi = firstHiOf(entry);
  let lo = firstLoOf(entry);
  let count = written;
  while (true) {
    const status = reserveExchange((count + 1) * item);
    if (status < 0) return status;
    const bits = hostBits(family, hi, lo, lastHiOf(entry), lastLoOf(entry));
    const at = exchangeAt() + count * item;
    writeAddress(family, at, hi, lo);
    store<u8>(at + item - 1, <u8>(bitsOf(family) - bits));
    count++;
    hi |= onesHi(bits);
    lo |= onesLo(bits);
    if (hi == lastHiOf(entry) && lo == lastLoOf(entry)) return <i32>count;
    hi = addHi(hi, lo, 0, 1);
    lo = lo + 1;
  }
}

/** Writes the fewest prefixes that cover the set exactly, as (address, length byte): their number, or a status. */
export function writePrefixes(set: usize): i32 {
  let written = 0;
  for (let entry = entryAt(set, 0); entry < endOf(set) && written >= 0; entry = nextEntry(entry)) {
    written = writeRangePrefixes(familyOf(set), entry, <u32>written);
  }
  return written;
}

/** Replaces `count` addresses by as many bytes, 1 = in the set, at the start of the buffer: how many are in it. */
export function containsMany(set: usize, count: u32): i32 {
  const family = familyOf(set);
  let inside = 0;
  for (let index: u32 = 0; index < count; index++) {
    const at = exchangeAt() + index * widthOf(family);
    const is = i32(findEntry(set, readHi(family, at), readLo(family, at)) != 0);
    store<u8>(exchangeAt() + index, <u8>is);
    inside += is;
  }
  return inside;
}
