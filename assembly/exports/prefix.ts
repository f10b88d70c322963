/**
 * Exports for prefix (CIDR) arithmetic: the address stands in the exchange buffer and is replaced by the result.
 * Effects: the exchange buffer.
 */
import { BAD_ARGUMENT, BAD_FAMILY, OK, SHORT_EXCHANGE } from "../abi";
import { isOpen } from "../memory/exchange";
import { commonLength, FIRST_OF, LAST_OF, MASK_OF, NEXT_OF, prefixOf, prefixPart } from "../numbers/prefix";
import { bitsOf, isFamily } from "../numbers/u128";
import { giveAddress, givenHi, givenLo } from "./arguments";

/** OK when there is such a prefix, and an exchange buffer. */
function checkPrefix(family: u32, length: u32): i32 {
  if (!isFamily(family)) return BAD_FAMILY;
  if (length > bitsOf(family)) return BAD_ARGUMENT;
  return isOpen() ? OK : SHORT_EXCHANGE;
}

function answer(operation: u32, family: u32, length: u32): i32 {
  let status = checkPrefix(family, length);
  if (status == OK) status = prefixOf(operation, family, givenHi(family, 0), givenLo(family, 0), length);
  if (status == OK) giveAddress(family);
  return status;
}

export function prefix_first(family: i32, length: i32): i32 {
  return answer(FIRST_OF, <u32>family, <u32>length);
}

export function prefix_last(family: i32, length: i32): i32 {
  return answer(LAST_OF, <u32>family, <u32>length);
}

export function prefix_mask(family: i32, length: i32): i32 {
  return answer(MASK_OF, <u32>family, <u32>length);
}

export function prefix_next(family: i32, length: i32): i32 {
  return answer(NEXT_OF, <u32>family, <u32>length);
}

export function prefix_part(family: i32, length: i32, part_length: i32, index: i32): i32 {
  const f = <u32>family;
  let status = checkPrefix(f, <u32>part_length);
  if (status == OK && <u32>length > <u32>part_length) status = BAD_ARGUMENT;
  if (status == OK) status = prefixPart(f, givenHi(f, 0), givenLo(f, 0), <u32>length, <u32>part_length, <u32>index);
  if (status == OK) giveAddress(f);
  return status;
}

export function prefix_common(family: i32): i32 {
  const f = <u32>family;
  const status = checkPrefix(f, 0);
  if (status != OK) return status;
  return <i32>commonLength(f, givenHi(f, 0), givenLo(f, 0), givenHi(f, 1), givenLo(f, 1));
}
