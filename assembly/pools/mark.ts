/**
 * The four operations on one address or ordinal of a pool: contains, test, claim, release.
 * Effects: linear memory; may grow it.
 */
import { MAX_SPARSE, NO_MEMORY, OUTSIDE, OVER_CEILING, WIDE_HI, WIDE_LO } from "../abi";
import { claimOrdinal, entryOf, maskedWord, releaseOrdinal, usedWord } from "../bitmap/bitmap";
import { findEntry } from "../sets/range-set";
import { pushFreed } from "./freed";
import { addSparseMasked, bitmapOf, freedOf, locate, masksOf, setSparse, sparseOf } from "./pool";
import { sparseAdd, sparseCount, sparseHas, sparseRemove, sparseReserve } from "./sparse-set";

/** Is it allocatable, that is not masked? */
export const CONTAINS: u32 = 0;
/** Is it used? */
export const TEST: u32 = 1;
/** Mark it used, masked or not. */
export const CLAIM: u32 = 2;
/** Mark it not used. */
export const RELEASE: u32 = 3;

/** An operation on an ordinal below the window: 1 yes or done, 0 no or nothing to do, NO_MEMORY. */
export function operateAt(pool: usize, operation: u32, ordinal: u32): i32 {
  const bitmap = bitmapOf(pool);
  if (operation == CLAIM) return claimOrdinal(bitmap, ordinal);
  const entry = entryOf(bitmap, ordinal >>> 12);
  if (operation == TEST) return <i32>(usedWord(entry, ordinal) >> ordinal) & 1;
  if (operation == CONTAINS) return <i32>(~maskedWord(entry, ordinal) >> ordinal) & 1;
  const result = releaseOrdinal(bitmap, ordinal);
  if (result == 1 && freedOf(pool) != 0) pushFreed(freedOf(pool), bitmap, ordinal);
  return result;
}

function claimBeyond(pool: usize, hi: u64, lo: u64, masked: bool): i32 {
  if (sparseCount(sparseOf(pool)) >= MAX_SPARSE) return OVER_CEILING;
  const sparse = sparseReserve(sparseOf(pool));
  if (sparse == 0) return NO_MEMORY;
  setSparse(pool, sparse);
  sparseAdd(sparse, hi, lo);
  addSparseMasked(pool, i32(masked));
  return 1;
}

/** An operation on an ordinal past the window. */
function operateBeyond(pool: usize, operation: u32, hi: u64, lo: u64, masked: bool): i32 {
  if (operation == CONTAINS) return i32(!masked);
  const used = sparseHas(sparseOf(pool), hi, lo);
  if (operation == TEST) return i32(used);
  if (used == (operation == CLAIM)) return 0;
  if (operation == CLAIM) return claimBeyond(pool, hi, lo, masked);
  sparseRemove(sparseOf(pool), hi, lo);
  addSparseMasked(pool, -i32(masked));
  return 1;
}

/** An operation on an address: as {@link operateAt}, or OUTSIDE, or OVER_CEILING for a claim beyond the window. */
export function operate(pool: usize, operation: u32, hi: u64, lo: u64): i32 {
  const ordinal = locate(pool, hi, lo);
  if (ordinal >= 0) return operateAt(pool, operation, <u32>ordinal);
  if (ordinal == OUTSIDE) return operation == CONTAINS ? 0 : OUTSIDE;
  const masked = findEntry(masksOf(pool), hi, lo) != 0;
  return operateBeyond(pool, operation, load<u64>(WIDE_HI), load<u64>(WIDE_LO), masked);
}
