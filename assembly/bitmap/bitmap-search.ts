/**
 * Searches in the bitmap: the next free ordinal in a handful of loads at any fill, and runs word by word.
 */
import { NONE } from "../abi";
import { ALL, chunkAt, groupAt, MASKED, TOP, USED, windowOf } from "./bitmap";

/** The bits above position `at`, 0 to 63. */
function above(at: u32): u64 {
  return (ALL << at) << 1;
}

/** The free bits of the ordinal's word. */
export function freeWord(bitmap: usize, ordinal: u32): u64 {
  const at = chunkAt(bitmap, ordinal >>> 12);
  return at == 0 ? ALL : freeBits(at, (ordinal >>> 6) & 63);
}

function freeBits(at: usize, word: u32): u64 {
  const cell = at + (word << 4);
  return ~(load<u64>(cell, USED) | load<u64>(cell, MASKED));
}

/** The first chunk after `chunk` that is not full; NONE when there is none. */
function findChunk(bitmap: usize, chunk: u32): i32 {
  let group = chunk >>> 6;
  let chunks = ~load<u64>(groupAt(bitmap, group)) & above(chunk & 63);
  if (chunks == 0) {
    const groups = ~load<u64>(bitmap, TOP) & above(group);
    if (groups == 0) return NONE;
    group = <u32>ctz<u64>(groups);
    chunks = ~load<u64>(groupAt(bitmap, group));
  }
  return (group << 6) | <u32>ctz<u64>(chunks);
}

/** The first free ordinal at or after `start`, which is below the window; NONE when there is none. */
export function findFree(bitmap: usize, start: u32): i32 {
  let chunk = start >>> 12;
  let at = chunkAt(bitmap, chunk);
  if (at == 0) return start;
  let word = (start >>> 6) & 63;
  const bits = freeBits(at, word) & (ALL << (start & 63));
  if (bits != 0) return (start & ~63) | <u32>ctz<u64>(bits);
  let words = ~load<u64>(at) & above(word);
  if (words == 0) {
    const next = findChunk(bitmap, chunk);
    if (next < 0) return NONE;
    chunk = <u32>next;
    at = chunkAt(bitmap, chunk);
    if (at == 0) return next << 12;
    words = ~load<u64>(at);
  }
  word = <u32>ctz<u64>(words);
  return (chunk << 12) | (word << 6) | <u32>ctz<u64>(freeBits(at, word));
}

/** The used bits of the ordinal's word. */
function usedWord(bitmap: usize, ordinal: u32): u64 {
  const at = chunkAt(bitmap, ordinal >>> 12);
  return at == 0 ? 0 : load<u64>(at + (((ordinal >>> 6) & 63) << 4), USED);
}

/** What a scan looks for. */
const A_USED: u32 = 0;
const AN_UNUSED: u32 = 1;
const A_TAKEN: u32 = 2;

/** The first ordinal from `first` to `end` - 1 of the wanted kind; `end` when there is none. */
function scan(bitmap: usize, first: u32, end: u32, wanted: u32): u32 {
  let ordinal = first;
  while (ordinal < end) {
    let bits = wanted == A_TAKEN ? ~freeWord(bitmap, ordinal) : usedWord(bitmap, ordinal);
    if (wanted == AN_UNUSED) bits = ~bits;
    bits &= ALL << (ordinal & 63);
    if (bits != 0) return min<u32>(end, (ordinal & ~63) | <u32>ctz<u64>(bits));
    ordinal = (ordinal | (chunkAt(bitmap, ordinal >>> 12) == 0 ? 4095 : 63)) + 1;
  }
  return end;
}

/** The first ordinal of `first` to `last` that is not free; last + 1 when all are. */
export function findTaken(bitmap: usize, first: u32, last: u32): u32 {
  return scan(bitmap, first, last + 1, A_TAKEN);
}

/** The first used ordinal at or after `start`; the window when there is none. */
export function findUsed(bitmap: usize, start: u32): u32 {
  return scan(bitmap, start, windowOf(bitmap), A_USED);
}

/** The first ordinal at or after `start` whose used bit is clear; the window when there is none. */
export function findUnused(bitmap: usize, start: u32): u32 {
  return scan(bitmap, start, windowOf(bitmap), AN_UNUSED);
}
