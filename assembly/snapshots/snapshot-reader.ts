/**
 * Reads a snapshot into a pool. Whatever the bytes are, nothing outside the pool changes, and on any failure the
 * pool itself is as before.
 * Effects: linear memory; may grow it.
 */
import { BAD_SNAPSHOT, NO_MEMORY, OK, OTHER_POOL, OTHER_VERSION, OVER_CEILING, WIDE_HI, WIDE_LO } from "../abi";
import { chunkCountOf, setBits, setRun, USED, usedOf, windowOf } from "../bitmap/bitmap";
import { checksum, digestOf } from "../numbers/digest";
import { addHi, less } from "../numbers/u128";
import { bytesLeft, readBytes, readSmall, readVarint, startReading } from "../numbers/varint";
import { CLAIM, operate } from "../pools/mark";
import {
  addressOf,
  bitmapOf,
  createPool,
  freedOf,
  freePool,
  masksOf,
  poolFamily,
  rangesOf,
  setCursor,
  trackFreed,
} from "../pools/pool";
import { sizeHi, sizeLo } from "../sets/range-set";
import { EMPTY, FULL, HEADER_BYTES, MAGIC, RAW, RAW_BYTES, RUNS, TRAILER_BYTES, VERSION } from "./snapshot";

/** Whether the bytes are a sound snapshot of this pool's ranges. */
function checkHeader(pool: usize, start: usize, length: u32): i32 {
  if (length < HEADER_BYTES + TRAILER_BYTES || load<u32>(start) != MAGIC) return BAD_SNAPSHOT;
  if (load<u8>(start, 4) != VERSION) return OTHER_VERSION;
  const body = length - TRAILER_BYTES;
  if (load<u64>(start + body) != checksum(start, body)) return BAD_SNAPSHOT;
  const sameFamily = load<u8>(start, 5) == <u8>poolFamily(pool);
  const sameRanges = load<u64>(start, 8) == digestOf(rangesOf(pool));
  const sameWindow = load<u32>(start, 16) == windowOf(bitmapOf(pool));
  return sameFamily && sameRanges && sameWindow ? OK : OTHER_POOL;
}

/** Sets `count` ordinals from `first` on, if the window has them. */
function fill(bitmap: usize, first: u32, count: u32): i32 {
  if (<u64>first + count > <u64>windowOf(bitmap)) return BAD_SNAPSHOT;
  return count == 0 ? OK : setRun(bitmap, first, first + count - 1, USED);
}

function readRuns(bitmap: usize, chunk: u32): i32 {
  const first = chunk << 12;
  let bit: u32 = 0;
  let value = false;
  while (bit < 4096) {
    const length = readSmall();
    if (length > 4096 - bit || (length == 0 && bit > 0)) return BAD_SNAPSHOT;
    const status = value ? fill(bitmap, first + bit, length) : OK;
    if (status != OK) return status;
    bit += length;
    value = !value;
  }
  return OK;
}

function readRaw(bitmap: usize, chunk: u32): i32 {
  if (bytesLeft() < RAW_BYTES) return BAD_SNAPSHOT;
  const at = readBytes(RAW_BYTES);
  for (let word: u32 = 0; word < 64; word++) {
    const bits = load<u64>(at + (word << 3));
    const first = (chunk << 12) | (word << 6);
    if (bits == 0) continue;
    if (<u64>first + 63 - clz<u64>(bits) >= <u64>windowOf(bitmap)) return BAD_SNAPSHOT;
    const status = setBits(bitmap, first, bits, USED);
    if (status != OK) return status;
  }
  return OK;
}

function readWindow(bitmap: usize): i32 {
  const chunks = chunkCountOf(bitmap);
  let chunk: u32 = 0;
  while (chunk < chunks) {
    const token = readSmall();
    const kind = token & 3;
    const repeated = kind == EMPTY || kind == FULL;
    const count = repeated ? token >>> 2 : 1;
    if (token == 0xffffffff || (!repeated && token >>> 2 != 0)) return BAD_SNAPSHOT;
    if (count == 0 || count > chunks - chunk) return BAD_SNAPSHOT;
    let status = OK;
    if (kind == FULL) status = fill(bitmap, chunk << 12, count << 12);
    if (kind == RUNS) status = readRuns(bitmap, chunk);
    if (kind == RAW) status = readRaw(bitmap, chunk);
    if (status != OK) return status;
    chunk += count;
  }
  return OK;
}

/** Claims the ordinal, if it is past the window and below the size of the ranges. */
function claimBeyond(pool: usize, hi: u64, lo: u64): i32 {
  if (hi == 0 && lo < <u64>windowOf(bitmapOf(pool))) return BAD_SNAPSHOT;
  const ranges = rangesOf(pool);
  const bounded = (sizeHi(ranges) | sizeLo(ranges)) != 0;
  if (bounded && !less(hi, lo, sizeHi(ranges), sizeLo(ranges))) return BAD_SNAPSHOT;
  addressOf(pool, hi, lo);
  const result = operate(pool, CLAIM, load<u64>(WIDE_HI), load<u64>(WIDE_LO));
  if (result == OVER_CEILING) return BAD_SNAPSHOT;
  return result < 0 ? result : result == 1 ? OK : BAD_SNAPSHOT;
}

/** Reads the runs beyond the window. */
function readBeyond(pool: usize, runs: u32): i32 {
  let hi: u64 = 0;
  let lo: u64 = windowOf(bitmapOf(pool));
  for (let run: u32 = 0; run < runs; run++) {
    if (!readVarint()) return BAD_SNAPSHOT;
    const gapHi = load<u64>(WIDE_LO);
    if (!readVarint()) return BAD_SNAPSHOT;
    const gapLo = load<u64>(WIDE_LO);
    const length = readSmall();
    hi = addHi(hi, lo, gapHi, gapLo);
    lo = lo + gapLo;
    for (let done: u64 = 0; done <= <u64>length; done++) {
      const status = claimBeyond(pool, hi, lo);
      if (status != OK) return status;
      hi = addHi(hi, lo, 0, 1);
      lo = lo + 1;
    }
  }
  return OK;
}

function readBody(pool: usize, start: usize, length: u32): i32 {
  const used = load<u32>(start, 20);
  const runs = load<u32>(start, 24);
  const cursor = load<u32>(start, 28);
  startReading(start + HEADER_BYTES, length - HEADER_BYTES - TRAILER_BYTES);
  let status = readWindow(bitmapOf(pool));
  if (status == OK) status = readBeyond(pool, runs);
  if (status != OK) return status;
  if (bytesLeft() != 0 || usedOf(bitmapOf(pool)) != used || cursor > windowOf(bitmapOf(pool))) return BAD_SNAPSHOT;
  setCursor(pool, cursor);
  return OK;
}

/** A pool of the same shape with the used addresses of the `length` bytes; 0 on failure, with the status in WIDE_LO. */
export function restore(pool: usize, start: usize, length: u32): usize {
  let status = checkHeader(pool, start, length);
  const fresh = status == OK ? createPool(rangesOf(pool), masksOf(pool)) : 0;
  if (status == OK && fresh == 0) status = NO_MEMORY;
  if (status == OK) status = readBody(fresh, start, length);
  if (status == OK && freedOf(pool) != 0) status = trackFreed(fresh);
  if (status == OK) return fresh;
  if (fresh != 0) freePool(fresh);
  store<u64>(WIDE_LO, <u64>status);
  return 0;
}
