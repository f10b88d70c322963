/**
 * FNV-1a, 64 bits: the checksum of snapshots, and the digest by which a snapshot names its pool's ranges.
 */
import { endOf, entryAt, nextEntry } from "../sets/range-set";

const OFFSET: u64 = 0xcbf29ce484222325;
const PRIME: u64 = 0x100000001b3;

/** The checksum of `length` bytes. */
export function checksum(start: usize, length: u32): u64 {
  return extend(OFFSET, start, length);
}

function extend(seed: u64, start: usize, length: u32): u64 {
  let hash = seed;
  for (let at = start; at < start + length; at++) hash = (hash ^ <u64>load<u8>(at)) * PRIME;
  return hash;
}

/** The digest of a set: its family in 4 bytes, then first and last of each range as two pairs of u64, little-endian. */
export function digestOf(set: usize): u64 {
  let hash = extend(OFFSET, set, 4);
  for (let entry = entryAt(set, 0); entry < endOf(set); entry = nextEntry(entry)) hash = extend(hash, entry, 32);
  return hash;
}
