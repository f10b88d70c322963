/**
 * Exports that read and change the used addresses: by address (in the exchange buffer) and by ordinal, one and many.
 * Effects: linear memory; may grow it.
 */
import { BAD_ARGUMENT, BAD_HANDLE, OK, OUTSIDE, SHORT_EXCHANGE } from "../abi";
import { claimRun, releaseRun } from "../allocation/allocate-run";
import { windowOf } from "../bitmap/bitmap";
import { holds, isOpen } from "../memory/exchange";
import { widthOf } from "../numbers/u128";
import { many } from "../pools/batch";
import { CLAIM, CONTAINS, operate, operateAt, RELEASE, TEST } from "../pools/mark";
import { addressOf, bitmapOf, locate, poolFamily } from "../pools/pool";
import { giveAddress, givenHi, givenLo, poolOf } from "./arguments";

/** An operation on the address in the exchange buffer. */
function one(handle: i32, operation: u32): i32 {
  const pool = poolOf(handle);
  if (pool == 0) return BAD_HANDLE;
  const family = poolFamily(pool);
  if (!isOpen()) return SHORT_EXCHANGE;
  return operate(pool, operation, givenHi(family, 0), givenLo(family, 0));
}

/** An operation on an ordinal of the window. */
function oneAt(handle: i32, operation: u32, ordinal: u32): i32 {
  const pool = poolOf(handle);
  if (pool == 0) return BAD_HANDLE;
  return ordinal < windowOf(bitmapOf(pool)) ? operateAt(pool, operation, ordinal) : OUTSIDE;
}

/** An operation on the addresses, or ordinals, in the exchange buffer. */
function some(handle: i32, operation: u32, count: i32, byOrdinal: bool): i32 {
  const pool = poolOf(handle);
  if (pool == 0) return BAD_HANDLE;
  if (!holds(count, byOrdinal ? 4 : widthOf(poolFamily(pool)))) return SHORT_EXCHANGE;
  return many(pool, operation, <u32>count, byOrdinal);
}

export function pool_contains(pool: i32): i32 {
  return one(pool, CONTAINS);
}

export function pool_test(pool: i32): i32 {
  return one(pool, TEST);
}

export function pool_claim(pool: i32): i32 {
  return one(pool, CLAIM);
}

export function pool_release(pool: i32): i32 {
  return one(pool, RELEASE);
}

export function pool_contains_many(pool: i32, count: i32): i32 {
  return some(pool, CONTAINS, count, false);
}

export function pool_test_many(pool: i32, count: i32): i32 {
  return some(pool, TEST, count, false);
}

export function pool_claim_many(pool: i32, count: i32): i32 {
  return some(pool, CLAIM, count, false);
}

export function pool_release_many(pool: i32, count: i32): i32 {
  return some(pool, RELEASE, count, false);
}

export function pool_test_at(pool: i32, ordinal: i32): i32 {
  return oneAt(pool, TEST, <u32>ordinal);
}

export function pool_claim_at(pool: i32, ordinal: i32): i32 {
  return oneAt(pool, CLAIM, <u32>ordinal);
}

export function pool_release_at(pool: i32, ordinal: i32): i32 {
  return oneAt(pool, RELEASE, <u32>ordinal);
}

export function pool_test_at_many(pool: i32, count: i32): i32 {
  return some(pool, TEST, count, true);
}

export function pool_claim_at_many(pool: i32, count: i32): i32 {
  return some(pool, CLAIM, count, true);
}

export function pool_release_at_many(pool: i32, count: i32): i32 {
  return some(pool, RELEASE, count, true);
}

export function pool_claim_run(pool: i32, first: i32, count: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  return count < 1 ? BAD_ARGUMENT : claimRun(at, <u32>first, <u32>count);
}

export function pool_release_run(pool: i32, first: i32, count: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  return count < 1 ? BAD_ARGUMENT : releaseRun(at, <u32>first, <u32>count);
}

export function pool_address(pool: i32, ordinal: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  if (!isOpen()) return SHORT_EXCHANGE;
  if (<u32>ordinal >= windowOf(bitmapOf(at))) return OUTSIDE;
  addressOf(at, 0, <u32>ordinal);
  giveAddress(poolFamily(at));
  return OK;
}

export function pool_ordinal(pool: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  if (!isOpen()) return SHORT_EXCHANGE;
  const family = poolFamily(at);
  const ordinal = locate(at, givenHi(family, 0), givenLo(family, 0));
  return ordinal < 0 ? OUTSIDE : ordinal;
}
