/**
 * A 64-ary hierarchical bitmap over the ordinals 0 to window - 1, with two bits per ordinal: used and masked.
 * An ordinal is free when neither is set. Called by pools, policies and snapshots.
 * Effects: linear memory; may grow it.
 *
 *  top        1 word    bit i: group i is full            (group = 64 chunks = 2^18 ordinals)
 *  group    ≤ 64 words  bit j: chunk j of it is full      (chunk = 64 words = 4,096 ordinals)
 *  chunk   ≤ 4,096      on demand: an absent chunk is all free
 *    summary  1 word    bit k: word k is full
 *    used    64 words   ┐ full word = every ordinal used
 *    masked  64 words   ┘ or masked
 *
 * Bits past the window are set on every level, so that no search leaves it.
 */
import { NO_MEMORY, NONE, OK } from "./abi";
import { allocateChunk, freeChunk } from "./heap";

const WINDOW: usize = 0;
const CHUNKS: usize = 4;
const TOP: usize = 8;
const USED_COUNT: usize = 16;
const MASKED_COUNT: usize = 20;
const USED_MASKED_COUNT: usize = 24;
const DIRECTORY: usize = 28;
const GROUPS: usize = 32;

export const USED: usize = 8;
export const MASKED: usize = 520;
const ALL: u64 = ~(<u64>0);

export function windowOf(bitmap: usize): u32 {
  return load<u32>(bitmap, WINDOW);
}
export function chunkCountOf(bitmap: usize): u32 {
  return load<u32>(bitmap, CHUNKS);
}
/** Ordinals whose used bit is set, masked or not. */
export function usedOf(bitmap: usize): u32 {
  return load<u32>(bitmap, USED_COUNT);
}
export function maskedOf(bitmap: usize): u32 {
  return load<u32>(bitmap, MASKED_COUNT);
}
/** Ordinals that are both used and masked. */
export function usedMaskedOf(bitmap: usize): u32 {
  return load<u32>(bitmap, USED_MASKED_COUNT);
}

function groupsFor(window: u32): u32 {
  return (window + 0x3ffff) >>> 18;
}

/** Bytes of the bitmap's fixed part. */
export function bitmapBytes(window: u32): u32 {
  return <u32>GROUPS + groupsFor(window) * 8 + ((window + 4095) >>> 12) * 4;
}

/** Where the address of the chunk is kept; the chunk there may be absent (0). */
function chunkCell(bitmap: usize, chunk: u32): usize {
  return load<u32>(bitmap, DIRECTORY) + (chunk << 2);
}

/** The chunk of that index; 0 when it is absent, which means all free. */
export function chunkAt(bitmap: usize, chunk: u32): usize {
  return load<u32>(chunkCell(bitmap, chunk));
}

/** Sets the bits past the window on all levels. */
export function initBitmap(bitmap: usize, window: u32): i32 {
  const chunks = (window + 4095) >>> 12;
  const groups = groupsFor(window);
  store<u32>(bitmap, window, WINDOW);
  store<u32>(bitmap, chunks, CHUNKS);
  store<u32>(bitmap, <u32>(bitmap + GROUPS) + groups * 8, DIRECTORY);
  store<u64>(bitmap, groups < 64 ? ALL << groups : 0, TOP);
  if ((chunks & 63) != 0) store<u64>(bitmap + ((groups - 1) << 3), ALL << (chunks & 63), GROUPS);
  if ((window & 4095) == 0) return OK;
  const status = setRun(bitmap, window, chunks * 4096 - 1, MASKED);
  store<u32>(bitmap, 0, MASKED_COUNT);
  return status;
}

export function freeChunks(bitmap: usize): void {
  for (let chunk: u32 = 0; chunk < chunkCountOf(bitmap); chunk++) {
    const at = chunkAt(bitmap, chunk);
    if (at != 0) freeChunk(at);
  }
}

function requireChunk(bitmap: usize, chunk: u32): usize {
  const cell = chunkCell(bitmap, chunk);
  const present = load<u32>(cell);
  if (present != 0) return present;
  const fresh = allocateChunk();
  store<u32>(cell, <u32>fresh);
  return fresh;
}

/** Marks word `word` of the chunk full, and whatever that fills above it. */
function riseFull(bitmap: usize, at: usize, chunk: u32, word: u32): void {
  const summary = load<u64>(at) | ((<u64>1) << word);
  store<u64>(at, summary);
  if (summary != ALL) return;
  const group = bitmap + ((chunk >>> 6) << 3);
  const chunks = load<u64>(group, GROUPS) | ((<u64>1) << (chunk & 63));
  store<u64>(group, chunks, GROUPS);
  if (chunks == ALL) store<u64>(bitmap, load<u64>(bitmap, TOP) | ((<u64>1) << (chunk >>> 6)), TOP);
}

/** Marks word `word` of the chunk not full, and all above it. */
function riseFree(bitmap: usize, at: usize, chunk: u32, word: u32): void {
  const summary = load<u64>(at);
  store<u64>(at, summary & ~((<u64>1) << word));
  if (summary != ALL) return;
  const group = bitmap + ((chunk >>> 6) << 3);
  store<u64>(group, load<u64>(group, GROUPS) & ~((<u64>1) << (chunk & 63)), GROUPS);
  store<u64>(bitmap, load<u64>(bitmap, TOP) & ~((<u64>1) << (chunk >>> 6)), TOP);
}

/** Whether the used bit of the ordinal, below the window, is set. */
export function isUsed(bitmap: usize, ordinal: u32): bool {
  const at = chunkAt(bitmap, ordinal >>> 12);
  if (at == 0) return false;
  return ((load<u64>(at + (((ordinal >>> 6) & 63) << 3), USED) >> (ordinal & 63)) & 1) != 0;
}

/** Whether the masked bit of the ordinal, below the window, is set. */
export function isMasked(bitmap: usize, ordinal: u32): bool {
  const at = chunkAt(bitmap, ordinal >>> 12);
  if (at == 0) return false;
  return ((load<u64>(at + (((ordinal >>> 6) & 63) << 3), MASKED) >> (ordinal & 63)) & 1) != 0;
}

/** Sets the used bit of an ordinal below the window: 1 newly, 0 it was set, or NO_MEMORY. */
export function claimOrdinal(bitmap: usize, ordinal: u32): i32 {
  const chunk = ordinal >>> 12;
  const word = (ordinal >>> 6) & 63;
  const bit = (<u64>1) << (ordinal & 63);
  const at = requireChunk(bitmap, chunk);
  if (at == 0) return NO_MEMORY;
  const cell = at + (word << 3);
  const before = load<u64>(cell, USED);
  if ((before & bit) != 0) return 0;
  const masked = load<u64>(cell, MASKED);
  store<u64>(cell, before | bit, USED);
  store<u32>(bitmap, load<u32>(bitmap, USED_COUNT) + 1, USED_COUNT);
  if ((masked & bit) != 0) store<u32>(bitmap, load<u32>(bitmap, USED_MASKED_COUNT) + 1, USED_MASKED_COUNT);
  else if ((before | bit | masked) == ALL) riseFull(bitmap, at, chunk, word);
  return 1;
}

/** Clears the used bit of an ordinal below the window: 1 it was set, 0 it was not. */
export function releaseOrdinal(bitmap: usize, ordinal: u32): i32 {
  const chunk = ordinal >>> 12;
  const word = (ordinal >>> 6) & 63;
  const bit = (<u64>1) << (ordinal & 63);
  const at = chunkAt(bitmap, chunk);
  if (at == 0) return 0;
  const cell = at + (word << 3);
  const before = load<u64>(cell, USED);
  if ((before & bit) == 0) return 0;
  const masked = load<u64>(cell, MASKED);
  store<u64>(cell, before & ~bit, USED);
  store<u32>(bitmap, load<u32>(bitmap, USED_COUNT) - 1, USED_COUNT);
  if ((masked & bit) != 0) store<u32>(bitmap, load<u32>(bitmap, USED_MASKED_COUNT) - 1, USED_MASKED_COUNT);
  else if ((before | masked) == ALL) riseFree(bitmap, at, chunk, word);
  return 1;
}

/** Sets the bits of `first` to `last` inclusive in one plane, USED or MASKED. Masks come before uses. */
export function setRun(bitmap: usize, first: u32, last: u32, plane: usize): i32 {
  let ordinal = first;
  while (ordinal <= last) {
    const end = min<u32>(last, ordinal | 63);
    const bits = (ALL << (ordinal & 63)) & (ALL >> (63 - (end & 63)));
    const at = requireChunk(bitmap, ordinal >>> 12);
    if (at == 0) return NO_MEMORY;
    const word = (ordinal >>> 6) & 63;
    const cell = at + (word << 3);
    const before = load<u64>(cell + plane);
    const added = bits & ~before;
    store<u64>(cell + plane, before | bits);
    const count = bitmap + (plane == USED ? USED_COUNT : MASKED_COUNT);
    store<u32>(count, load<u32>(count) + <u32>popcnt<u64>(added));
    if (plane == USED) {
      const both = <u32>popcnt<u64>(added & load<u64>(cell, MASKED));
      store<u32>(bitmap, load<u32>(bitmap, USED_MASKED_COUNT) + both, USED_MASKED_COUNT);
    }
    if ((load<u64>(cell, USED) | load<u64>(cell, MASKED)) == ALL) riseFull(bitmap, at, ordinal >>> 12, word);
    ordinal = end + 1;
  }
  return OK;
}

/** The bits above position `at`, 0 to 63. */
function above(at: u32): u64 {
  return (ALL << at) << 1;
}

/** The first free ordinal of a chunk that is not full. */
function firstInChunk(bitmap: usize, chunk: u32): i32 {
  const at = chunkAt(bitmap, chunk);
  if (at == 0) return chunk << 12;
  const word = <u32>ctz<u64>(~load<u64>(at));
  const cell = at + (word << 3);
  return (chunk << 12) | (word << 6) | <u32>ctz<u64>(~(load<u64>(cell, USED) | load<u64>(cell, MASKED)));
}

/** The first free ordinal at or after `start`, which is below the window; NONE when there is none. */
export function findFree(bitmap: usize, start: u32): i32 {
  const chunk = start >>> 12;
  const at = chunkAt(bitmap, chunk);
  if (at == 0) return start;
  const word = (start >>> 6) & 63;
  const cell = at + (word << 3);
  const bits = ~(load<u64>(cell, USED) | load<u64>(cell, MASKED)) & (ALL << (start & 63));
  if (bits != 0) return (start & ~63) | <u32>ctz<u64>(bits);
  if ((~load<u64>(at) & above(word)) != 0) {
    const next = <u32>ctz<u64>(~load<u64>(at) & above(word));
    const nextCell = at + (next << 3);
    return (chunk << 12) | (next << 6) | <u32>ctz<u64>(~(load<u64>(nextCell, USED) | load<u64>(nextCell, MASKED)));
  }
  let group = chunk >>> 6;
  let chunks = ~load<u64>(bitmap + (group << 3), GROUPS) & above(chunk & 63);
  if (chunks == 0) {
    const groups = ~load<u64>(bitmap, TOP) & above(group);
    if (groups == 0) return NONE;
    group = <u32>ctz<u64>(groups);
    chunks = ~load<u64>(bitmap + (group << 3), GROUPS);
  }
  return firstInChunk(bitmap, (group << 6) | <u32>ctz<u64>(chunks));
}

/** The used bits of a chunk's word; none when the chunk is absent. */
function usedWord(bitmap: usize, ordinal: u32): u64 {
  const at = chunkAt(bitmap, ordinal >>> 12);
  return at == 0 ? 0 : load<u64>(at + (((ordinal >>> 6) & 63) << 3), USED);
}

/** The first used ordinal at or after `start`; the window when there is none. */
export function findUsed(bitmap: usize, start: u32): u32 {
  const window = windowOf(bitmap);
  let ordinal = start;
  while (ordinal < window) {
    if (chunkAt(bitmap, ordinal >>> 12) == 0) {
      ordinal = (ordinal | 4095) + 1;
      continue;
    }
    const bits = usedWord(bitmap, ordinal) & (ALL << (ordinal & 63));
    if (bits != 0) return (ordinal & ~63) | <u32>ctz<u64>(bits);
    ordinal = (ordinal | 63) + 1;
  }
  return window;
}

/** The first ordinal at or after `start` whose used bit is clear; the window when there is none. */
export function findUnused(bitmap: usize, start: u32): u32 {
  const window = windowOf(bitmap);
  let ordinal = start;
  while (ordinal < window) {
    const bits = ~usedWord(bitmap, ordinal) & (ALL << (ordinal & 63));
    if (bits != 0) return min<u32>(window, (ordinal & ~63) | <u32>ctz<u64>(bits));
    ordinal = (ordinal | 63) + 1;
  }
  return window;
}
