/**
 * Searches in the bitmap: the next free ordinal in a handful of loads at any fill, and runs word by word.
 */
import { NONE } from "../abi";
import { ALL, entryOf, groupAt, maskedWord, summaryAt, TOP, usedWord, windowOf } from "./bitmap";

/** The bits above position `at` modulo 64. */
function above(at: u32): u64 {
  return (ALL << at) << 1;
}

/** The free bits of the ordinal's word. */
export function freeWord(bitmap: usize, ordinal: u32): u64 {
  return freeBits(entryOf(bitmap, ordinal >>> 12), ordinal);
}

function freeBits(entry: u32, ordinal: u32): u64 {
  return ~(usedWord(entry, ordinal) | maskedWord(entry, ordinal));
}

/** The first chunk after `chunk` that is not full; NONE when there is none. */
function findChunk(bitmap: usize, chunk: u32): i32 {
  let group = chunk >>> 6;
  let chunks = ~load<u64>(groupAt(bitmap, group)) & above(chunk);
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
  const summary = load<u64>(summaryAt(bitmap, chunk));
  // A full word's bits are seldom in a cache; its summary is.
  if (((summary >> (start >>> 6)) & 1) == 0) {
    const bits = freeWord(bitmap, start) & (ALL << start);
    if (bits != 0) return (start & ~63) | <u32>ctz<u64>(bits);
  }
  let words = ~summary & above(start >>> 6);
  if (words == 0) {
    const next = findChunk(bitmap, chunk);
    if (next < 0) return NONE;
    chunk = <u32>next;
    words = ~load<u64>(summaryAt(bitmap, chunk));
  }
  const first = (chunk << 12) | ((<u32>ctz<u64>(words)) << 6);
  return first | <u32>ctz<u64>(freeWord(bitmap, first));
}

/** The targets of a scan. */
const A_USED: u32 = 0;
const AN_UNUSED: u32 = 1;
const A_TAKEN: u32 = 2;

/** The first ordinal from `first` to `end` - 1 of the wanted kind; `end` when there is none. */
function scan(bitmap: usize, first: u32, end: u32, wanted: u32): u32 {
  let ordinal = first;
  while (ordinal < end) {
    const entry = entryOf(bitmap, ordinal >>> 12);
    let bits = wanted == A_TAKEN ? ~freeBits(entry, ordinal) : usedWord(entry, ordinal);
    if (wanted == AN_UNUSED) bits = ~bits;
    bits &= ALL << ordinal;
    if (bits != 0) return min<u32>(end, (ordinal & ~63) | <u32>ctz<u64>(bits));
    ordinal = (ordinal | (entry == 0 ? 4095 : 63)) + 1;
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
