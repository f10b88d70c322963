/**
 * Exports for range sets. Arguments are checked here; addresses in the exchange buffer are 4 or 16 bytes,
 * big-endian, by the family of the set.
 * Effects: linear memory; may grow it.
 */

import {
  BAD_ARGUMENT,
  BAD_FAMILY,
  BAD_HANDLE,
  BAD_RANGE,
  MAX_RANGES,
  NO_MEMORY,
  OK,
  OVER_CEILING,
  SHORT_EXCHANGE,
} from "../abi";
import { exchangeAt, holds } from "../memory/exchange";
import { isFamily, widthOf } from "../numbers/u128";
import { containsMany, itemBytes, readRanges, writePrefixes, writeRanges, writeSize } from "../sets/range-codec";
import { countOf, createSet, familyOf, findEntry, freeSet } from "../sets/range-set";
import { includes, intersect, overlaps, subtract, union } from "../sets/set-algebra";
import { checkMembers, checkPair, givenHi, givenLo, nameSet, setOf } from "./arguments";

/** A set from the exchange buffer: ranges of two addresses, or prefixes of an address and a length byte. */
function create(family: u32, count: i32, prefixes: bool): i32 {
  if (!isFamily(family)) return BAD_FAMILY;
  if (!holds(count, itemBytes(family, prefixes))) return SHORT_EXCHANGE;
  if (<u32>count > MAX_RANGES) return OVER_CEILING;
  const set = createSet(family, <u32>count);
  if (set == 0) return NO_MEMORY;
  const status = readRanges(set, exchangeAt(), <u32>count, prefixes);
  if (status == OK) return nameSet(set);
  freeSet(set);
  return status;
}

export function set_create(family: i32, count: i32): i32 {
  return create(<u32>family, count, false);
}

export function set_create_prefixes(family: i32, count: i32): i32 {
  return create(<u32>family, count, true);
}

export function set_union(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? nameSet(union(setOf(a), setOf(b))) : status;
}

export function set_intersect(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? nameSet(intersect(setOf(a), setOf(b))) : status;
}

export function set_subtract(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? nameSet(subtract(setOf(a), setOf(b))) : status;
}

export function set_overlaps(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? i32(overlaps(setOf(a), setOf(b))) : status;
}

export function set_includes(a: i32, b: i32): i32 {
  const status = checkPair(a, b);
  return status == OK ? i32(includes(setOf(a), setOf(b))) : status;
}

export function set_contains(set: i32): i32 {
  const status = checkMembers(set, 1);
  if (status != OK) return status;
  const family = familyOf(setOf(set));
  return i32(findEntry(setOf(set), givenHi(family, 0), givenLo(family, 0)) != 0);
}

export function set_contains_many(set: i32, count: i32): i32 {
  const status = checkMembers(set, count);
  return status == OK ? containsMany(setOf(set), <u32>count) : status;
}

export function set_count(set: i32): i32 {
  return setOf(set) == 0 ? BAD_HANDLE : <i32>countOf(setOf(set));
}

export function set_size(set: i32): i32 {
  return setOf(set) == 0 ? BAD_HANDLE : writeSize(setOf(set));
}

export function set_ranges(set: i32): i32 {
  return setOf(set) == 0 ? BAD_HANDLE : writeRanges(setOf(set));
}

export function set_prefixes(set: i32): i32 {
  return setOf(set) == 0 ? BAD_HANDLE : writePrefixes(setOf(set));
}
