/**
 * Exports that choose: the next free ordinal by each policy, runs, and addresses beyond the window.
 * Effects: linear memory; may grow it.
 */
import { BAD_ARGUMENT, BAD_HANDLE, OK, SHORT_EXCHANGE } from "../abi";
import { findFrom, isPolicy, take, takeMany } from "../allocation/allocate";
import { findRun, MAX_ALIGN_BITS } from "../allocation/allocate-run";
import { findWide } from "../allocation/allocate-wide";
import { isOpen } from "../memory/exchange";
import { poolFamily } from "../pools/pool";
import { giveAddress, givenHi, givenLo, poolOf } from "./arguments";

export function pool_find(pool: i32, start: i32): i32 {
  const at = poolOf(pool);
  return at == 0 ? BAD_HANDLE : findFrom(at, <u32>start);
}

export function pool_allocate(pool: i32, policy: i32, argument: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  return isPolicy(at, policy) ? take(at, policy, <u32>argument) : BAD_ARGUMENT;
}

export function pool_allocate_many(pool: i32, policy: i32, argument: i32, count: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  if (count < 0 || !isPolicy(at, policy)) return BAD_ARGUMENT;
  return takeMany(at, policy, <u32>argument, <u32>count);
}

export function pool_find_run(pool: i32, start: i32, count: i32, align_bits: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  if (count < 1 || align_bits < 0 || align_bits > MAX_ALIGN_BITS) return BAD_ARGUMENT;
  return findRun(at, <u32>start, <u32>count, <u32>align_bits);
}

export function pool_find_wide(pool: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  if (!isOpen()) return SHORT_EXCHANGE;
  const status = findWide(at, givenHi(6, 0), givenLo(6, 0));
  if (status == OK) giveAddress(poolFamily(at));
  return status;
}
