/**
 * The order in which a pool's ordinals became free: a first-in first-out ring, for the least-recently-freed policy.
 * An ordinal may stand in the ring several times; only its last entry counts, and only while it is free.
 * An ordinal that is free and not in the ring has not been freed since the ring was made: it is fresh.
 * Effects: linear memory.
 *
 *  freed:  capacity u32 (the window) │ head u32 │ count u32 │ fresh u32 │ ring u32 × capacity │ entries u8 × capacity
 */
import { NONE } from "../abi";
import { findFree, freeWord } from "../bitmap/bitmap-search";
import { allocateZeroed, free } from "../memory/heap";

const HEAD: usize = 4;
const COUNT: usize = 8;
const FRESH: usize = 12;
const RING: usize = 16;
const ITEM_BYTES: u32 = 5;

/** An empty ring; 0 when there is no memory. */
export function createFreed(window: u32): usize {
  const freed = allocateZeroed(<u32>RING + window * ITEM_BYTES);
  if (freed != 0) store<u32>(freed, window);
  return freed;
}

export function dropFreed(freed: usize): void {
  if (freed != 0) free(freed, <u32>RING + load<u32>(freed) * ITEM_BYTES);
}

/** Ordinals in the ring, entries that no longer count among them. */
export function freedCount(freed: usize): u32 {
  return load<u32>(freed, COUNT);
}

function ringCell(freed: usize, index: u32): usize {
  const capacity = load<u32>(freed);
  const place = load<u32>(freed, HEAD) + index;
  return freed + RING + ((place < capacity ? place : place - capacity) << 2);
}

/** The ordinal of entry `index`, the oldest first. */
export function freedAt(freed: usize, index: u32): u32 {
  return load<u32>(ringCell(freed, index));
}

/** Returns the address of the number of the ordinal's entries. */
function entriesCell(freed: usize, ordinal: u32): usize {
  return freed + RING + (load<u32>(freed) << 2) + ordinal;
}

function isFree(bitmap: usize, ordinal: u32): bool {
  return ((freeWord(bitmap, ordinal) >> ordinal) & 1) != 0;
}

function append(freed: usize, ordinal: u32): void {
  const count = load<u32>(freed, COUNT);
  store<u32>(ringCell(freed, count), ordinal);
  store<u32>(freed, count + 1, COUNT);
  const cell = entriesCell(freed, ordinal);
  store<u8>(cell, load<u8>(cell) + 1);
}

/** Removes the oldest entry: its ordinal when the entry still counts, else NONE. */
function shift(freed: usize, bitmap: usize): i32 {
  const ordinal = freedAt(freed, 0);
  const head = load<u32>(freed, HEAD) + 1;
  store<u32>(freed, head == load<u32>(freed) ? 0 : head, HEAD);
  store<u32>(freed, load<u32>(freed, COUNT) - 1, COUNT);
  const cell = entriesCell(freed, ordinal);
  const entries = load<u8>(cell) - 1;
  store<u8>(cell, entries);
  return entries == 0 && isFree(bitmap, ordinal) ? <i32>ordinal : NONE;
}

/** Removes the entries that no longer count, and those of `except`; the order stays. */
export function compact(freed: usize, bitmap: usize, except: u32): void {
  for (let left = load<u32>(freed, COUNT); left > 0; left--) {
    const ordinal = shift(freed, bitmap);
    if (ordinal >= 0 && <u32>ordinal != except) append(freed, <u32>ordinal);
  }
}

/** Puts an ordinal that has just become free at the end. */
export function pushFreed(freed: usize, bitmap: usize, ordinal: u32): void {
  const crowded = load<u8>(entriesCell(freed, ordinal)) == 255;
  if (crowded || load<u32>(freed, COUNT) == load<u32>(freed)) compact(freed, bitmap, ordinal);
  append(freed, ordinal);
}

/** The lowest free ordinal that is not in the ring; NONE when there is none. */
function findFresh(freed: usize, bitmap: usize): i32 {
  let start = load<u32>(freed, FRESH);
  while (start < load<u32>(freed)) {
    const found = findFree(bitmap, start);
    if (found < 0) break;
    store<u32>(freed, <u32>found, FRESH);
    if (load<u8>(entriesCell(freed, <u32>found)) == 0) return found;
    start = <u32>found + 1;
  }
  store<u32>(freed, load<u32>(freed), FRESH);
  return NONE;
}

/**
 * The free ordinal to use next: the lowest fresh one, else the one freed first, which leaves the ring. NONE: all taken.
 */
export function takeFreed(freed: usize, bitmap: usize): i32 {
  const fresh = findFresh(freed, bitmap);
  if (fresh >= 0) return fresh;
  while (freedCount(freed) > 0) {
    const ordinal = shift(freed, bitmap);
    if (ordinal >= 0) return ordinal;
  }
  return NONE;
}
