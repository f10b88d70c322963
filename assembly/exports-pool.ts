/**
 * Exports for pools. Arguments are checked here; addresses in the exchange buffer are 4 or 16 bytes, big-endian,
 * by the family of the pool.
 * Effects: linear memory; may grow it.
 */
import {
  BAD_FAMILY,
  BAD_HANDLE,
  KIND_POOL,
  KIND_SET,
  NO_MEMORY,
  OK,
  OUTSIDE,
  SHORT_EXCHANGE,
  WIDE_HI,
  WIDE_LO,
} from "./abi";
import { findFrom } from "./allocate";
import { checkAddresses, checkPair } from "./arguments";
import { claimMany } from "./batch";
import { windowOf } from "./bitmap";
import { exchangeAt, holds } from "./exchange";
import { name, rename, reserveHandle, resolve } from "./handles";
import {
  addressOf,
  bitmapOf,
  claimAddress,
  contains,
  createPool,
  freePool,
  poolFamily,
  releaseAddress,
  testAddress,
} from "./pool";
import { writeCounts } from "./pool-counts";
import { familyOf } from "./range-set";
import { copyUsed } from "./reshape";
import { readHi, readLo, widthOf, writeAddress } from "./u128";

export function pool_create(ranges: i32, masks: i32): i32 {
  let status = checkPair(ranges, masks);
  if (status == OK) status = reserveHandle();
  if (status != OK) return status;
  const pool = createPool(resolve(ranges, KIND_SET), resolve(masks, KIND_SET));
  return pool == 0 ? NO_MEMORY : name(pool, KIND_POOL);
}

export function pool_edit(handle: i32, ranges: i32, masks: i32): i32 {
  const old = resolve(handle, KIND_POOL);
  if (old == 0) return BAD_HANDLE;
  const pair = checkPair(ranges, masks);
  if (pair != OK) return pair;
  const set = resolve(ranges, KIND_SET);
  if (familyOf(set) != poolFamily(old)) return BAD_FAMILY;
  const pool = createPool(set, resolve(masks, KIND_SET));
  if (pool == 0) return NO_MEMORY;
  const status = copyUsed(old, pool);
  if (status == OK) rename(handle, pool);
  freePool(status == OK ? old : pool);
  return status;
}

function inputHi(pool: usize): u64 {
  return readHi(poolFamily(pool), exchangeAt());
}

function inputLo(pool: usize): u64 {
  return readLo(poolFamily(pool), exchangeAt());
}

export function pool_contains(handle: i32): i32 {
  const status = checkAddresses(handle, 1);
  if (status != OK) return status;
  const pool = resolve(handle, KIND_POOL);
  return i32(contains(pool, inputHi(pool), inputLo(pool)));
}

export function pool_test(handle: i32): i32 {
  const status = checkAddresses(handle, 1);
  if (status != OK) return status;
  const pool = resolve(handle, KIND_POOL);
  return testAddress(pool, inputHi(pool), inputLo(pool));
}

export function pool_claim(handle: i32): i32 {
  const status = checkAddresses(handle, 1);
  if (status != OK) return status;
  const pool = resolve(handle, KIND_POOL);
  return claimAddress(pool, inputHi(pool), inputLo(pool));
}

export function pool_release(handle: i32): i32 {
  const status = checkAddresses(handle, 1);
  if (status != OK) return status;
  const pool = resolve(handle, KIND_POOL);
  return releaseAddress(pool, inputHi(pool), inputLo(pool));
}

export function pool_claim_many(handle: i32, count: i32): i32 {
  const status = checkAddresses(handle, count);
  return status == OK ? claimMany(resolve(handle, KIND_POOL), <u32>count) : status;
}

export function pool_find(handle: i32, start: i32): i32 {
  const pool = resolve(handle, KIND_POOL);
  return pool == 0 ? BAD_HANDLE : findFrom(pool, <u32>start);
}

export function pool_address(handle: i32, ordinal: i32): i32 {
  const pool = resolve(handle, KIND_POOL);
  if (pool == 0) return BAD_HANDLE;
  if (<u32>ordinal >= windowOf(bitmapOf(pool))) return OUTSIDE;
  const family = poolFamily(pool);
  if (!holds(1, widthOf(family))) return SHORT_EXCHANGE;
  addressOf(pool, 0, <u32>ordinal);
  writeAddress(family, exchangeAt(), load<u64>(WIDE_HI), load<u64>(WIDE_LO));
  return OK;
}

export function pool_counts(handle: i32): i32 {
  const pool = resolve(handle, KIND_POOL);
  return pool == 0 ? BAD_HANDLE : writeCounts(pool);
}
