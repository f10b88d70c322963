/**
 * A 64-ary hierarchical bitmap over the ordinals 0 to window - 1, with two bits per ordinal: used and masked.
 * An ordinal is free when neither is set. Called by pools, policies and snapshots; bitmap-search.ts looks things up.
 * Effects: linear memory; may grow it.
 *
 *  top        1 word    bit i: group i is full            (group = 64 chunks = 2^18 ordinals)
 *  group    ≤ 64 words  bit j: chunk j of it is full      (chunk = 64 words = 4,096 ordinals)
 *  chunk   ≤ 4,096      on demand: an absent chunk is all free
 *    summary  1 word    bit k: word k is full, that is every ordinal of it used or masked
 *    -        1 word
 *    words   64 × 2     used, masked; chunks are 16-byte aligned, so a pair never straddles two cache lines
 *
 * Bits past the window are set on every level, so that no search leaves it.
 */
import { NO_MEMORY, OK } from "../abi";
import { allocateChunk, freeChunk } from "../memory/heap";

const WINDOW: usize = 0;
const CHUNKS: usize = 4;
export const TOP: usize = 8;
const USED_COUNT: usize = 16;
const MASKED_COUNT: usize = 20;
const USED_MASKED_COUNT: usize = 24;
/** Where the groups stand: after the directory. */
const GROUPS_AT: usize = 28;
const DIRECTORY: usize = 32;

/** Where the planes of a chunk's first word are; those of the next word are 16 bytes further. */
export const USED: usize = 16;
export const MASKED: usize = 24;
export const ALL: u64 = ~(<u64>0);

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

/** Bytes before the groups, a multiple of 8. */
function directoryBytes(chunks: u32): u32 {
  return <u32>DIRECTORY + (((chunks + 1) & ~1) << 2);
}

/** The word of the group: one bit per chunk of it. */
export function groupAt(bitmap: usize, group: u32): usize {
  return load<u32>(bitmap, GROUPS_AT) + (group << 3);
}

/** Bytes of the bitmap's fixed part. */
export function bitmapBytes(window: u32): u32 {
  return directoryBytes((window + 4095) >>> 12) + groupsFor(window) * 8;
}

/** Where the address of the chunk is kept; the chunk there may be absent (0). */
function chunkCell(bitmap: usize, chunk: u32): usize {
  return bitmap + DIRECTORY + (chunk << 2);
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
  store<u32>(bitmap, <u32>bitmap + directoryBytes(chunks), GROUPS_AT);
  store<u64>(bitmap, groups < 64 ? ALL << groups : 0, TOP);
  if ((chunks & 63) != 0) store<u64>(groupAt(bitmap, groups - 1), ALL << (chunks & 63));
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

/** Sets or clears a bit: whether the word became, or ceased to be, all ones. */
function put(word: usize, bit: u32, value: bool): bool {
  const before = load<u64>(word);
  const mask = (<u64>1) << bit;
  const after = value ? before | mask : before & ~mask;
  store<u64>(word, after);
  return (before == ALL) != (after == ALL);
}

/** Records on all levels that a word of the chunk is full, or no longer full. */
function rise(bitmap: usize, at: usize, chunk: u32, word: u32, full: bool): void {
  if (!put(at, word, full)) return;
  if (put(groupAt(bitmap, chunk >>> 6), chunk & 63, full)) put(bitmap + TOP, chunk >>> 6, full);
}

/** Whether the bit of the ordinal, below the window, is set in the plane USED or MASKED. */
export function isSet(bitmap: usize, ordinal: u32, plane: usize): bool {
  const at = chunkAt(bitmap, ordinal >>> 12);
  if (at == 0) return false;
  return ((load<u64>(at + (((ordinal >>> 6) & 63) << 4) + plane) >> (ordinal & 63)) & 1) != 0;
}

/** Sets the used bit of an ordinal below the window: 1 newly, 0 it was set, or NO_MEMORY. */
export function claimOrdinal(bitmap: usize, ordinal: u32): i32 {
  const chunk = ordinal >>> 12;
  const word = (ordinal >>> 6) & 63;
  const bit = (<u64>1) << (ordinal & 63);
  const at = requireChunk(bitmap, chunk);
  if (at == 0) return NO_MEMORY;
  const cell = at + (word << 4);
  const used = load<u64>(cell, USED);
  if ((used & bit) != 0) return 0;
  const masked = load<u64>(cell, MASKED);
  store<u64>(cell, used | bit, USED);
  store<u32>(bitmap, usedOf(bitmap) + 1, USED_COUNT);
  if ((masked & bit) != 0) store<u32>(bitmap, usedMaskedOf(bitmap) + 1, USED_MASKED_COUNT);
  else if ((used | bit | masked) == ALL) rise(bitmap, at, chunk, word, true);
  return 1;
}

/** Clears the used bit of an ordinal below the window: 1 it was set, 0 it was not. */
export function releaseOrdinal(bitmap: usize, ordinal: u32): i32 {
  const chunk = ordinal >>> 12;
  const word = (ordinal >>> 6) & 63;
  const bit = (<u64>1) << (ordinal & 63);
  const at = chunkAt(bitmap, chunk);
  if (at == 0) return 0;
  const cell = at + (word << 4);
  const before = load<u64>(cell, USED);
  if ((before & bit) == 0) return 0;
  const masked = load<u64>(cell, MASKED);
  store<u64>(cell, before & ~bit, USED);
  store<u32>(bitmap, load<u32>(bitmap, USED_COUNT) - 1, USED_COUNT);
  if ((masked & bit) != 0) store<u32>(bitmap, load<u32>(bitmap, USED_MASKED_COUNT) - 1, USED_MASKED_COUNT);
  else if ((before | masked) == ALL) rise(bitmap, at, chunk, word, false);
  return 1;
}

/** Sets bits of the ordinal's word in the plane USED or MASKED, whatever was set before. OK or NO_MEMORY. */
export function setBits(bitmap: usize, ordinal: u32, bits: u64, plane: usize): i32 {
  const chunk = ordinal >>> 12;
  const word = (ordinal >>> 6) & 63;
  const at = requireChunk(bitmap, chunk);
  if (at == 0) return NO_MEMORY;
  const cell = at + (word << 4);
  const before = load<u64>(cell + plane);
  const other = load<u64>(cell + (USED + MASKED - plane));
  const added = bits & ~before;
  store<u64>(cell + plane, before | bits);
  const count = bitmap + (plane == USED ? USED_COUNT : MASKED_COUNT);
  store<u32>(count, load<u32>(count) + <u32>popcnt<u64>(added));
  store<u32>(bitmap, usedMaskedOf(bitmap) + <u32>popcnt<u64>(added & other), USED_MASKED_COUNT);
  if ((before | bits | other) == ALL) rise(bitmap, at, chunk, word, true);
  return OK;
}

/** Sets the bits of `first` to `last` inclusive in the plane USED or MASKED. OK or NO_MEMORY, with some of them set. */
export function setRun(bitmap: usize, first: u32, last: u32, plane: usize): i32 {
  for (let ordinal = first; ordinal <= last; ordinal = (ordinal | 63) + 1) {
    const bits = (ALL << (ordinal & 63)) & (ALL >> (63 - (min<u32>(last, ordinal | 63) & 63)));
    const status = setBits(bitmap, ordinal, bits, plane);
    if (status != OK) return status;
  }
  return OK;
}
