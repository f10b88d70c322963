/**
 * Exports for range sets. Arguments are checked here; addresses in the exchange buffer are 4 or 16 bytes,
 * big-endian, by the family of the set.
 * Effects: linear memory; may grow it.
 */
import {
  BAD_FAMILY,
  BAD_HANDLE,
  BAD_RANGE,
  KIND_SET,
  MAX_RANGES,
  NO_MEMORY,
  OK,
  OVER_CEILING,
  SHORT_EXCHANGE,
} from "./abi";
import { checkPair } from "./arguments";
import { exchangeAt, holds } from "./exchange";
import { name, reserveHandle, resolve } from "./handles";
import { readRanges, writePrefixes, writeRanges, writeSize } from "./range-codec";
import { countOf, createSet, familyOf, findEntry, freeSet, intersect, overlaps, subtract, union } from "./range-set";
import { isFamily, readHi, readLo, widthOf } from "./u128";

/** The handle of a new set, or NO_MEMORY when it is 0; too large a set is freed again. */
function nameSet(set: usize): i32 {
  if (set == 0) return NO_MEMORY;
  const status = countOf(set) > MAX_RANGES ? OVER_CEILING : reserveHandle();
  if (status == OK) return name(set, KIND_SET);
  freeSet(set);
  return status;
}

export function set_create(family: i32, count: i32): i32 {
  if (!isFamily(<u32>family)) return BAD_FAMILY;
  if (!holds(count, 2 * widthOf(<u32>family))) return SHORT_EXCHANGE;
  if (<u32>count > MAX_RANGES) return OVER_CEILING;
  const set = createSet(<u32>family, <u32>count);
  if (set == 0) return NO_MEMORY;
  if (readRanges(set, exchangeAt(), <u32>count) == OK) return nameSet(set);
  freeSet(set);
  return BAD_RANGE;
}

export function set_union(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? nameSet(union(resolve(a, KIND_SET), resolve(b, KIND_SET))) : status;
}

export function set_intersect(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? nameSet(intersect(resolve(a, KIND_SET), resolve(b, KIND_SET))) : status;
}

export function set_subtract(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? nameSet(subtract(resolve(a, KIND_SET), resolve(b, KIND_SET))) : status;
}

export function set_overlaps(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? i32(overlaps(resolve(a, KIND_SET), resolve(b, KIND_SET))) : status;
}

export function set_contains(handle: i32): i32 {
  const set = resolve(handle, KIND_SET);
  if (set == 0) return BAD_HANDLE;
  const family = familyOf(set);
  if (!holds(1, widthOf(family))) return SHORT_EXCHANGE;
  return i32(findEntry(set, readHi(family, exchangeAt()), readLo(family, exchangeAt())) != 0);
}

export function set_count(handle: i32): i32 {
  const set = resolve(handle, KIND_SET);
  return set == 0 ? BAD_HANDLE : <i32>countOf(set);
}

export function set_size(handle: i32): i32 {
  const set = resolve(handle, KIND_SET);
  return set == 0 ? BAD_HANDLE : writeSize(set);
}

export function set_ranges(handle: i32): i32 {
  const set = resolve(handle, KIND_SET);
  return set == 0 ? BAD_HANDLE : writeRanges(set);
}

export function set_prefixes(handle: i32): i32 {
  const set = resolve(handle, KIND_SET);
  return set == 0 ? BAD_HANDLE : writePrefixes(set);
}
