/**
 * A 64-ary hierarchical bitmap over the ordinals 0 to window - 1, with two bits per ordinal: used and masked.
 * An ordinal is free when neither is set. Called by pools, policies and snapshots; bitmap-search.ts looks things up.
 * Effects: linear memory; may grow it.
 *
 *  top        1 word    bit i: group i is full            (group = 64 chunks = 2^18 ordinals)
 *  group    ≤ 64 words  bit j: chunk j of it is full      (chunk = 64 words = 4,096 ordinals)
 *  summary ≤ 4,096      bit k: word k of the chunk is full, that is every ordinal of it used or masked
 *  chunk   ≤ 4,096      on demand: an absent chunk is all free
 *    used    64 words
 *    masked  64 words   only in chunks that have masked ordinals, few in most pools: fewer cache lines
 *
 * The directory has a chunk's address, and in its lowest bit whether there is a plane of masked bits. The summaries of
 * all chunks stand together, for the same reason.
 * Bits past the window are set on every level, so that no search leaves it.
 * A shift of 64 bits counts modulo 64, so an ordinal is shifted by as it is.
 */
import { NO_MEMORY, OK } from "../abi";
import { allocateZeroed, free } from "../memory/heap";

const WINDOW: usize = 0;
const CHUNKS: usize = 4;
export const TOP: usize = 8;
const USED_COUNT: usize = 16;
const MASKED_COUNT: usize = 20;
const USED_MASKED_COUNT: usize = 24;
/** Offsets of the directory and the summaries. */
const DIRECTORY: usize = 28;
const SUMMARIES: usize = 32;
const GROUPS: usize = 40;

/** Offsets of the planes of a chunk, each of PLANE_BYTES. */
export const USED: usize = 0;
export const MASKED: usize = 512;
export const PLANE_BYTES: u32 = 512;
/** In the directory: the chunk has masked bits. */
const HAS_MASKED: u32 = 1;
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

function chunksFor(window: u32): u32 {
  return (window + 4095) >>> 12;
}

function groupsFor(window: u32): u32 {
  return (window + 0x3ffff) >>> 18;
}

/** The word of the group: one bit per chunk of it. */
export function groupAt(bitmap: usize, group: u32): usize {
  return bitmap + GROUPS + (group << 3);
}

/** Bytes of the bitmap's fixed part, without the directory and the summaries. */
export function bitmapBytes(window: u32): u32 {
  return <u32>GROUPS + groupsFor(window) * 8;
}

/** The summary of the chunk: one bit per word of it. */
export function summaryAt(bitmap: usize, chunk: u32): usize {
  return load<u32>(bitmap, SUMMARIES) + (chunk << 3);
}

/** Returns the address of the chunk's entry in the directory. */
function entryCell(bitmap: usize, chunk: u32): usize {
  return load<u32>(bitmap, DIRECTORY) + (chunk << 2);
}

/** The chunk's entry of the directory; 0 when the chunk is absent, which means all free. */
export function entryOf(bitmap: usize, chunk: u32): u32 {
  return load<u32>(entryCell(bitmap, chunk));
}

/** Returns the address of the ordinal's word of used bits, in the chunk of that entry. */
function wordAt(entry: u32, ordinal: u32): usize {
  return (entry & ~HAS_MASKED) + ((ordinal >>> 3) & 504);
}

/** The used bits of the ordinal's word; none of an absent chunk. */
export function usedWord(entry: u32, ordinal: u32): u64 {
  return entry == 0 ? 0 : load<u64>(wordAt(entry, ordinal));
}

/** The masked bits of the ordinal's word. */
export function maskedWord(entry: u32, ordinal: u32): u64 {
  return (entry & HAS_MASKED) == 0 ? 0 : load<u64>(wordAt(entry, ordinal), MASKED);
}

/** Sets the bits past the window on all levels. */
export function initBitmap(bitmap: usize, window: u32): i32 {
  const chunks = chunksFor(window);
  const groups = groupsFor(window);
  store<u32>(bitmap, window, WINDOW);
  store<u32>(bitmap, <u32>allocateZeroed(chunks << 2), DIRECTORY);
  store<u32>(bitmap, <u32>allocateZeroed(chunks << 3), SUMMARIES);
  if (load<u32>(bitmap, DIRECTORY) == 0 || load<u32>(bitmap, SUMMARIES) == 0) return NO_MEMORY;
  store<u32>(bitmap, chunks, CHUNKS);
  store<u64>(bitmap, groups < 64 ? ALL << groups : 0, TOP);
  if ((chunks & 63) != 0) store<u64>(groupAt(bitmap, groups - 1), ALL << chunks);
  if ((window & 4095) == 0) return OK;
  const status = setRun(bitmap, window, chunks * 4096 - 1, MASKED);
  store<u32>(bitmap, 0, MASKED_COUNT);
  return status;
}

/** Frees the bitmap's memory besides its fixed part, also after {@link initBitmap} has failed. */
export function freeBitmap(bitmap: usize): void {
  for (let chunk: u32 = 0; chunk < chunkCountOf(bitmap); chunk++) {
    const entry = entryOf(bitmap, chunk);
    free(entry & ~HAS_MASKED, PLANE_BYTES << (entry & HAS_MASKED));
  }
  const chunks = chunksFor(windowOf(bitmap));
  free(load<u32>(bitmap, DIRECTORY), chunks << 2);
  free(load<u32>(bitmap, SUMMARIES), chunks << 3);
}

/**
 * The chunk's entry, of a chunk that is made when it is absent; 0 when there is no memory. Masked bits are set before
 * used ones.
 */
function requireChunk(bitmap: usize, chunk: u32, plane: usize): u32 {
  const cell = entryCell(bitmap, chunk);
  const present = load<u32>(cell);
  if (present != 0) return present;
  const flag = u32(plane == MASKED);
  const fresh = <u32>allocateZeroed(PLANE_BYTES << flag);
  if (fresh == 0) return 0;
  store<u32>(cell, fresh | flag);
  return fresh | flag;
}

/** Sets or clears a bit, by its number modulo 64: whether the word became, or ceased to be, all ones. */
function put(word: usize, bit: u32, value: bool): bool {
  const before = load<u64>(word);
  const mask = (<u64>1) << bit;
  const after = value ? before | mask : before & ~mask;
  store<u64>(word, after);
  return (before == ALL) != (after == ALL);
}

/** Records on all levels that the ordinal's word is full, or no longer full. */
function rise(bitmap: usize, ordinal: u32, full: bool): void {
  const chunk = ordinal >>> 12;
  if (!put(summaryAt(bitmap, chunk), ordinal >>> 6, full)) return;
  if (put(groupAt(bitmap, chunk >>> 6), chunk, full)) put(bitmap + TOP, chunk >>> 6, full);
}

/** Sets the used bit of an ordinal below the window: 1 newly, 0 it was set, or NO_MEMORY. */
export function claimOrdinal(bitmap: usize, ordinal: u32): i32 {
  const bit = (<u64>1) << ordinal;
  const entry = requireChunk(bitmap, ordinal >>> 12, USED);
  if (entry == 0) return NO_MEMORY;
  const cell = wordAt(entry, ordinal);
  const used = load<u64>(cell);
  if ((used & bit) != 0) return 0;
  store<u64>(cell, used | bit);
  store<u32>(bitmap, usedOf(bitmap) + 1, USED_COUNT);
  const masked = maskedWord(entry, ordinal);
  if ((masked & bit) != 0) store<u32>(bitmap, usedMaskedOf(bitmap) + 1, USED_MASKED_COUNT);
  else if ((used | bit | masked) == ALL) rise(bitmap, ordinal, true);
  return 1;
}

/** Clears the used bit of an ordinal below the window: 1 it was set, 0 it was not. */
export function releaseOrdinal(bitmap: usize, ordinal: u32): i32 {
  const bit = (<u64>1) << ordinal;
  const entry = entryOf(bitmap, ordinal >>> 12);
  if (entry == 0) return 0;
  const cell = wordAt(entry, ordinal);
  const before = load<u64>(cell);
  if ((before & bit) == 0) return 0;
  store<u64>(cell, before & ~bit);
  store<u32>(bitmap, usedOf(bitmap) - 1, USED_COUNT);
  const masked = maskedWord(entry, ordinal);
  if ((masked & bit) != 0) store<u32>(bitmap, usedMaskedOf(bitmap) - 1, USED_MASKED_COUNT);
  else if ((before | masked) == ALL) rise(bitmap, ordinal, false);
  return 1;
}

/** Sets bits of the ordinal's word in the plane USED or MASKED, whatever was set before. OK or NO_MEMORY. */
export function setBits(bitmap: usize, ordinal: u32, bits: u64, plane: usize): i32 {
  const entry = requireChunk(bitmap, ordinal >>> 12, plane);
  if (entry == 0) return NO_MEMORY;
  const cell = wordAt(entry, ordinal);
  const used = load<u64>(cell);
  const masked = maskedWord(entry, ordinal);
  const before = plane == USED ? used : masked;
  const added = bits & ~before;
  store<u64>(cell + plane, before | bits);
  const count = bitmap + (plane == USED ? USED_COUNT : MASKED_COUNT);
  store<u32>(count, load<u32>(count) + <u32>popcnt<u64>(added));
  store<u32>(
    bitmap,
    usedMaskedOf(bitmap) + <u32>popcnt<u64>(added & (plane == USED ? masked : used)),
    USED_MASKED_COUNT,
  );
  if ((used | masked | bits) == ALL) rise(bitmap, ordinal, true);
  return OK;
}

/** Sets the bits of `first` to `last` inclusive in the plane USED or MASKED. OK or NO_MEMORY, with some of them set. */
export function setRun(bitmap: usize, first: u32, last: u32, plane: usize): i32 {
  for (let ordinal = first; ordinal <= last; ordinal = (ordinal | 63) + 1) {
    const bits = (ALL << ordinal) & (ALL >> ~min<u32>(last, ordinal | 63));
    const status = setBits(bitmap, ordinal, bits, plane);
    if (status != OK) return status;
  }
  return OK;
}
