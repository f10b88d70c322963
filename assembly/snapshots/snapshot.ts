/**
 * A pool's used addresses as bytes: versioned, with a checksum, bound to the ranges of the pool. Masks are not in it.
 * Effects: the exchange buffer; may grow memory.
 *
 *  0   "BRTS" │ version u8 │ family u8 │ 0 u16
 *  8   digest of the ranges u64
 * 16   window u32 │ used in it u32 │ runs beyond it u32 │ cursor of round robin u32      all little-endian
 * 32   window: tokens until all chunks are told; a token is the varint n << 2 | kind
 *        EMPTY n chunks │ FULL n chunks │ RUNS then varints: clear, set, clear ... up to 4,096 │ RAW then 512 bytes
 *      beyond: per run the varints: distance from the end of the run before, or from the window, high 64 bits, then
 *              the low 64; length - 1
 * end  FNV-1a of all before, u64
 */
import { NO_MEMORY } from "../abi";
import { ALL, chunkCountOf, entryOf, usedOf, usedWord, windowOf } from "../bitmap/bitmap";
import { exchangeAt, reserveExchange } from "../memory/exchange";
import { checksum, digestOf } from "../numbers/digest";
import { addHi, subHi } from "../numbers/u128";
import { writeVarint } from "../numbers/varint";
import { bitmapOf, cursorOf, poolFamily, rangesOf, sparseOf } from "../pools/pool";
import { presentChunks } from "../pools/pool-counts";
import { sparseOrdinals } from "../pools/pool-sets";
import { sparseCount } from "../pools/sparse-set";
import {
  countOf,
  endOf,
  entryAt,
  firstHiOf,
  firstLoOf,
  freeSet,
  lastHiOf,
  lastLoOf,
  nextEntry,
} from "../sets/range-set";

/** "BRTS", little-endian. */
export const MAGIC: u32 = 0x53545242;
export const VERSION: u8 = 1;
export const HEADER_BYTES: u32 = 32;
export const TRAILER_BYTES: u32 = 8;
export const EMPTY: u32 = 0;
export const FULL: u32 = 1;
export const RUNS: u32 = 2;
export const RAW: u32 = 3;
export const RAW_BYTES: u32 = 512;

/** Length of the run of bits equal to `value` from `start` on, in the 4,096 used bits of the chunk of that entry. */
function runLength(entry: u32, start: u32, value: bool): u32 {
  let bit = start;
  while (bit < 4096) {
    const word = usedWord(entry, bit);
    const other = (value ? ~word : word) & (ALL << bit);
    if (other != 0) return ((bit & ~63) | <u32>ctz<u64>(other)) - start;
    bit = (bit | 63) + 1;
  }
  return 4096 - start;
}

/** Returns the token of the chunk: EMPTY, FULL or RUNS. */
function tokenOf(bitmap: usize, chunk: u32): u32 {
  const entry = entryOf(bitmap, chunk);
  if (runLength(entry, 0, false) == 4096) return EMPTY;
  return runLength(entry, 0, true) == 4096 ? FULL : RUNS;
}

/** Writes one chunk as runs, or raw when that is shorter: the address after it. */
function writeChunk(out: usize, entry: u32): usize {
  let next = writeVarint(out, RUNS);
  const limit = next + RAW_BYTES;
  let bit: u32 = 0;
  let value = false;
  while (bit < 4096 && next < limit) {
    const length = runLength(entry, bit, value);
    next = writeVarint(next, length);
    bit += length;
    value = !value;
  }
  if (next < limit) return next;
  next = writeVarint(out, RAW); // one byte, as RUNS is
  for (bit = 0; bit < 4096; bit += 64) {
    store<u64>(next, usedWord(entry, bit));
    next += 8;
  }
  return next;
}

function writeWindow(out: usize, bitmap: usize): usize {
  let next = out;
  let chunk: u32 = 0;
  while (chunk < chunkCountOf(bitmap)) {
    const token = tokenOf(bitmap, chunk);
    if (token == RUNS) {
      next = writeChunk(next, entryOf(bitmap, chunk));
      chunk++;
      continue;
    }
    const first = chunk;
    while (chunk < chunkCountOf(bitmap) && tokenOf(bitmap, chunk) == token) chunk++;
    next = writeVarint(next, ((chunk - first) << 2) | token);
  }
  return next;
}

function writeBeyond(out: usize, window: u32, runs: usize): usize {
  let next = out;
  let hi: u64 = 0;
  let lo: u64 = window;
  for (let run = entryAt(runs, 0); run < endOf(runs); run = nextEntry(run)) {
    next = writeVarint(next, subHi(firstHiOf(run), firstLoOf(run), hi, lo));
    next = writeVarint(next, firstLoOf(run) - lo);
    next = writeVarint(next, lastLoOf(run) - firstLoOf(run));
    hi = addHi(lastHiOf(run), lastLoOf(run), 0, 1);
    lo = lastLoOf(run) + 1;
  }
  return next;
}

function writeHeader(out: usize, pool: usize, runs: usize): void {
  const bitmap = bitmapOf(pool);
  store<u32>(out, MAGIC);
  store<u8>(out, VERSION, 4);
  store<u8>(out, <u8>poolFamily(pool), 5);
  store<u16>(out, 0, 6);
  store<u64>(out, digestOf(rangesOf(pool)), 8);
  store<u32>(out, windowOf(bitmap), 16);
  store<u32>(out, usedOf(bitmap), 20);
  store<u32>(out, countOf(runs), 24);
  store<u32>(out, cursorOf(pool), 28);
}

/**
 * More than the snapshot can take: per chunk a skipping token and a chunk, per run three numbers of at most 10 bytes.
 */
function boundOf(pool: usize): u32 {
  const chunks = presentChunks(bitmapOf(pool)) + 1;
  return HEADER_BYTES + chunks * (RAW_BYTES + 16) + sparseCount(sparseOf(pool)) * 30 + TRAILER_BYTES;
}

/** Writes the snapshot to the exchange buffer: its length in bytes, or a status. */
export function save(pool: usize): i32 {
  const runs = sparseOrdinals(pool);
  const status = runs == 0 ? NO_MEMORY : reserveExchange(boundOf(pool));
  if (status < 0) {
    freeSet(runs);
    return status;
  }
  const start = exchangeAt();
  writeHeader(start, pool, runs);
  let next = writeWindow(start + HEADER_BYTES, bitmapOf(pool));
  next = writeBeyond(next, windowOf(bitmapOf(pool)), runs);
  freeSet(runs);
  store<u64>(next, checksum(start, <u32>(next - start)));
  return <i32>(next - start + TRAILER_BYTES);
}
