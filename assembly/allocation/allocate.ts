/**
 * Allocation policies over a pool's window: the next free ordinal. Called by the ABI. Finding marks nothing; taking
 * marks its result.
 * Effects: linear memory; may grow it.
 */
import { NONE, OK, WIDE_HI, WIDE_LO } from "../abi";
import { ALL, claimOrdinal, setBits, USED, windowOf } from "../bitmap/bitmap";
import { findFree, freeWord } from "../bitmap/bitmap-search";
import { exchangeAt, reserveExchange } from "../memory/exchange";
import { readBig, widthOf, writeAddress } from "../numbers/u128";
import { takeFreed } from "../pools/freed";
import { addressOf, bitmapOf, cursorOf, freedOf, poolFamily, setCursor } from "../pools/pool";
import { lastLoOf } from "../sets/range-set";

/** The lowest free ordinal. */
const ASCENDING: i32 = 0;
/** The next free ordinal after the last one this policy took. */
const ROUND_ROBIN: i32 = 1;
/** The first free ordinal from `argument` modulo the window on: a hash makes it sticky and spread out. */
const HASHED: i32 = 2;
/** The free ordinal that has been free the longest; only in a pool that tracks it. */
const LEAST_RECENTLY_FREED: i32 = 3;

/** The first free ordinal at or after `start` modulo the window, wrapping once; NONE when all are taken. */
export function findFrom(pool: usize, start: u32): i32 {
  const bitmap = bitmapOf(pool);
  const window = windowOf(bitmap);
  if (window == 0) return NONE;
  let first = start;
  if (start >= window) {
    const mask = window - 1;
    first = (window & mask) == 0 ? start & mask : start % window; // a division takes as long as the search
  }
  const found = findFree(bitmap, first);
  return found == NONE ? findFree(bitmap, 0) : found;
}

export function isPolicy(pool: usize, policy: i32): bool {
  if (policy == LEAST_RECENTLY_FREED) return freedOf(pool) != 0;
  return policy >= ASCENDING && policy <= HASHED;
}

function startOf(pool: usize, policy: i32, argument: u32): u32 {
  if (policy == HASHED) return argument;
  return policy == ROUND_ROBIN ? cursorOf(pool) : 0;
}

/** Takes one ordinal by a valid policy; NONE or NO_MEMORY otherwise. */
export function take(pool: usize, policy: i32, argument: u32): i32 {
  const ordinal =
    policy == LEAST_RECENTLY_FREED
      ? takeFreed(freedOf(pool), bitmapOf(pool))
      : findFrom(pool, startOf(pool, policy, argument));
  if (ordinal < 0) return ordinal;
  const result = claimOrdinal(bitmapOf(pool), <u32>ordinal);
  if (result < 0) return result;
  if (policy == ROUND_ROBIN) setCursor(pool, <u32>ordinal + 1);
  return ordinal;
}

/** The lowest `count` of the set bits. */
function lowest(bits: u64, count: u32): u64 {
  if (<u32>popcnt<u64>(bits) <= count) return bits;
  let rest = bits;
  for (let left = count; left > 0; left--) rest &= rest - 1;
  return bits & ~rest;
}

/** Writes the addresses of a word's bits as items `index` and on; `base` is the word's first ordinal. */
function writeBits(pool: usize, base: u32, bits: u64, index: u32): void {
  const width = widthOf(poolFamily(pool));
  let at = exchangeAt() + index * width;
  let rest = bits;
  while (rest != 0) {
    // The bits up to where the range, or the block of 256 addresses, ends: only the last byte of the address changes.
    const first = ctz<u64>(rest);
    const entry = addressOf(pool, 0, base + first);
    const lo = load<u64>(WIDE_LO);
    // A range that ends beyond the next multiple of 2^64 may seem to end too early: then the bits take another round.
    const room = min<u64>(~lo & 255, lastLoOf(entry) - lo);
    let part = rest & (ALL >> (63 - first - min<u64>(63 - first, room)));
    rest ^= part;
    if (width == 4) {
      const start = bswap<u32>(<u32>lo) - ((<u32>first) << 24);
      for (; part != 0; part &= part - 1) {
        store<u32>(at, start + ((<u32>ctz<u64>(part)) << 24));
        at += 4;
      }
    } else {
      const high = readBig(WIDE_HI);
      const start = readBig(WIDE_LO) - (first << 56);
      for (; part != 0; part &= part - 1) {
        store<u64>(at, high);
        store<u64>(at, start + (ctz<u64>(part) << 56), 8);
        at += 16;
      }
    }
  }
}

/** Takes up to `count` ordinals, one at least, word by word from `start` on, and writes their addresses: how many. */
function takeWords(pool: usize, policy: i32, start: u32, count: u32): u32 {
  const bitmap = bitmapOf(pool);
  let ordinal = start;
  let taken: u32 = 0;
  let found = findFrom(pool, start);
  while (found >= 0) {
    const word = <u32>found & ~63;
    const bits = lowest(freeWord(bitmap, <u32>found) & (ALL << found), count - taken);
    if (setBits(bitmap, <u32>found, bits, USED) != OK) break;
    const index = taken;
    taken += <u32>popcnt<u64>(bits);
    ordinal = word + 64 - <u32>clz<u64>(bits);
    found = taken < count ? findFrom(pool, ordinal) : NONE; // before the writing, whose end is hard to foretell
    writeBits(pool, word, bits, index);
  }
  if (policy == ROUND_ROBIN) setCursor(pool, ordinal);
  return taken;
}

/** Takes up to `count` ordinals one by one, and writes their addresses: how many. */
function takeSingly(pool: usize, policy: i32, argument: u32, count: u32): u32 {
  const family = poolFamily(pool);
  let taken: u32 = 0;
  while (taken < count) {
    const ordinal = take(pool, policy, argument);
    if (ordinal < 0) break;
    addressOf(pool, 0, <u32>ordinal);
    writeAddress(family, exchangeAt() + taken * widthOf(family), load<u64>(WIDE_HI), load<u64>(WIDE_LO));
    taken++;
  }
  return taken;
}

/**
 * Takes up to `count` ordinals by a valid policy and writes their addresses to the exchange buffer: how many, fewer
 * when no more are free or memory is out; or a status, and then none is taken.
 */
export function takeMany(pool: usize, policy: i32, argument: u32, count: u32): i32 {
  const most = min<u32>(count, windowOf(bitmapOf(pool)));
  const status = reserveExchange(most * widthOf(poolFamily(pool)));
  if (status < 0) return status;
  // One word is more work than one ordinal.
  if (policy == LEAST_RECENTLY_FREED || most <= 1) return <i32>takeSingly(pool, policy, argument, most);
  return <i32>takeWords(pool, policy, startOf(pool, policy, argument), most);
}
