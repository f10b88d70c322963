/**
 * Exports for the life of pools: creation, edit, counts, sets out of them, snapshots.
 * Effects: linear memory; may grow it.
 */
import {
  BAD_FAMILY,
  BAD_HANDLE,
  KIND_POOL,
  MAX_RANGES,
  NO_MEMORY,
  OK,
  OVER_CEILING,
  SHORT_EXCHANGE,
  WIDE_LO,
} from "../abi";
import { exchangeAt, holds } from "../memory/exchange";
import { name, rename, reserveHandle } from "../memory/handles";
import { createPool, freePool, masksOf, poolFamily, rangesOf, trackFreed } from "../pools/pool";
import { writeBlocks, writeCounts } from "../pools/pool-counts";
import { countUsedRuns, usedSet } from "../pools/pool-sets";
import { copyState } from "../pools/reshape";
import { copySet, familyOf } from "../sets/range-set";
import { save } from "../snapshots/snapshot";
import { restore } from "../snapshots/snapshot-reader";
import { checkPair, nameSet, poolOf, setOf } from "./arguments";

export function pool_create(ranges: i32, masks: i32): i32 {
  let status = checkPair(ranges, masks);
  if (status == OK) status = reserveHandle();
  if (status != OK) return status;
  const pool = createPool(setOf(ranges), setOf(masks));
  return pool == 0 ? NO_MEMORY : name(pool, KIND_POOL);
}

export function pool_edit(pool: i32, ranges: i32, masks: i32): i32 {
  const old = poolOf(pool);
  if (old == 0) return BAD_HANDLE;
  const pair = checkPair(ranges, masks);
  if (pair != OK) return pair;
  if (familyOf(setOf(ranges)) != poolFamily(old)) return BAD_FAMILY;
  const edited = createPool(setOf(ranges), setOf(masks));
  if (edited == 0) return NO_MEMORY;
  const status = copyState(old, edited);
  if (status == OK) rename(pool, edited);
  freePool(status == OK ? old : edited);
  return status;
}

export function pool_track_freed(pool: i32): i32 {
  return poolOf(pool) == 0 ? BAD_HANDLE : trackFreed(poolOf(pool));
}

export function pool_counts(pool: i32): i32 {
  return poolOf(pool) == 0 ? BAD_HANDLE : writeCounts(poolOf(pool));
}

export function pool_blocks(pool: i32): i32 {
  return poolOf(pool) == 0 ? BAD_HANDLE : writeBlocks(poolOf(pool));
}

export function pool_ranges(pool: i32): i32 {
  return poolOf(pool) == 0 ? BAD_HANDLE : nameSet(copySet(rangesOf(poolOf(pool))));
}

export function pool_masks(pool: i32): i32 {
  return poolOf(pool) == 0 ? BAD_HANDLE : nameSet(copySet(masksOf(poolOf(pool))));
}

export function pool_used(pool: i32): i32 {
  const at = poolOf(pool);
  if (at == 0) return BAD_HANDLE;
  return countUsedRuns(at) > MAX_RANGES ? OVER_CEILING : nameSet(usedSet(at));
}

export function pool_save(pool: i32): i32 {
  return poolOf(pool) == 0 ? BAD_HANDLE : save(poolOf(pool));
}

export function pool_load(pool: i32, length: i32): i32 {
  const old = poolOf(pool);
  if (old == 0) return BAD_HANDLE;
  if (!holds(length, 1)) return SHORT_EXCHANGE;
  const loaded = restore(old, exchangeAt(), <u32>length);
  if (loaded == 0) return <i32>load<u64>(WIDE_LO);
  rename(pool, loaded);
  freePool(old);
  return OK;
}
