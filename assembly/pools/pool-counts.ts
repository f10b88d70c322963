/**
 * The contents of a pool, in numbers.
 * Effects: the exchange buffer; may grow memory.
 *
 *  0  size       17 bytes, big-endian      36  window      u32     52  free in window  u32
 * 17  masked     17 bytes, big-endian      40  used        u32     56  chunks present  u32
 * 34  -                                    44  used masked u32     60  ring entries    u32
 *                                          48  beyond      u32     64  digest          u64, little-endian as the u32
 */

import { chunkCountOf, entryOf, maskedOf, usedMaskedOf, usedOf, windowOf } from "../bitmap/bitmap";
import { freeWord } from "../bitmap/bitmap-search";
import { exchangeAt, reserveExchange } from "../memory/exchange";
import { digestOf } from "../numbers/digest";
import { writeSizeAt } from "../sets/range-codec";
import { freedCount } from "./freed";
import { bitmapOf, freedOf, masksOf, rangesOf, sparseMaskedOf, sparseOf } from "./pool";
import { sparseCount } from "./sparse-set";

const BYTES: u32 = 72;

/** Chunks that are not absent. */
export function presentChunks(bitmap: usize): u32 {
  let present: u32 = 0;
  for (let chunk: u32 = 0; chunk < chunkCountOf(bitmap); chunk++) present += u32(entryOf(bitmap, chunk) != 0);
  return present;
}

/** Writes the counts: their length in bytes, or a status. */
export function writeCounts(pool: usize): i32 {
  const status = reserveExchange(BYTES);
  if (status < 0) return status;
  const at = exchangeAt();
  const bitmap = bitmapOf(pool);
  const beyond = sparseCount(sparseOf(pool));
  writeSizeAt(rangesOf(pool), at);
  writeSizeAt(masksOf(pool), at + 17);
  store<u16>(at, 0, 34);
  store<u32>(at, windowOf(bitmap), 36);
  store<u32>(at, usedOf(bitmap) + beyond, 40);
  store<u32>(at, usedMaskedOf(bitmap) + sparseMaskedOf(pool), 44);
  store<u32>(at, beyond, 48);
  store<u32>(at, windowOf(bitmap) - maskedOf(bitmap) - (usedOf(bitmap) - usedMaskedOf(bitmap)), 52);
  store<u32>(at, presentChunks(bitmap), 56);
  store<u32>(at, freedOf(pool) == 0 ? 0 : freedCount(freedOf(pool)), 60);
  store<u64>(at, digestOf(rangesOf(pool)), 64);
  return <i32>BYTES;
}

/** Free ordinals of one chunk. */
function freeInChunk(bitmap: usize, chunk: u32): u32 {
  const first = chunk << 12;
  let free: u32 = 0;
  for (let word: u32 = 0; word < 64; word++) free += <u32>popcnt<u64>(freeWord(bitmap, first | (word << 6)));
  return free;
}

/** Writes the free ordinals of each block of 4,096 as u16, little-endian: the number of blocks, or a status. */
export function writeBlocks(pool: usize): i32 {
  const bitmap = bitmapOf(pool);
  const blocks = chunkCountOf(bitmap);
  const status = reserveExchange(blocks * 2);
  if (status < 0) return status;
  for (let block: u32 = 0; block < blocks; block++)
    store<u16>(exchangeAt() + block * 2, <u16>freeInChunk(bitmap, block));
  return <i32>blocks;
}
