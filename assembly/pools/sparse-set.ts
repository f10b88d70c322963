/**
 * The used ordinals beyond a pool's window: a hash set of 128-bit numbers other than 0, open addressing.
 * Called by pools. Half full at most; a removed entry leaves no tombstone.
 * Effects: linear memory; may grow it.
 *
 *  set:  capacity u32 (power of two) │ count u32 │ - │ slots of 16 bytes: hi, lo (0, 0 = empty)
 */
import { allocateZeroed, free } from "../memory/heap";

const COUNT: usize = 4;
const SLOTS: usize = 16;
const SLOT_BYTES: u32 = 16;
const LO: usize = 8;
const FIRST_CAPACITY: u32 = 16;

export function sparseCount(set: usize): u32 {
  return set == 0 ? 0 : load<u32>(set, COUNT);
}

/** Slots, empty ones too. */
export function sparseCapacity(set: usize): u32 {
  return set == 0 ? 0 : load<u32>(set);
}

/** The first slot from `index` on that holds a number; the capacity when there is none. */
export function sparseNext(set: usize, index: u32): u32 {
  let next = index;
  while (next < sparseCapacity(set) && isEmpty(sparseSlot(set, next))) next++;
  return next;
}

/** Address of slot `index`: hi, then lo; both 0 when it is empty. */
export function sparseSlot(set: usize, index: u32): usize {
  return set + SLOTS + index * SLOT_BYTES;
}

function createSparse(capacity: u32): usize {
  const set = allocateZeroed(<u32>SLOTS + capacity * SLOT_BYTES);
  if (set != 0) store<u32>(set, capacity);
  return set;
}

export function freeSparse(set: usize): void {
  if (set != 0) free(set, <u32>SLOTS + load<u32>(set) * SLOT_BYTES);
}

/** 2^64 divided by the golden ratio: consecutive multiples spread evenly. */
const GOLDEN: u64 = 0x9e3779b97f4a7c15;

/** Returns the slot at which the number's probing starts. */
function homeOf(set: usize, hi: u64, lo: u64): u32 {
  const mixed = (lo ^ (hi * GOLDEN)) * GOLDEN;
  return <u32>((mixed ^ (mixed >> 29)) >> 32) & (load<u32>(set) - 1);
}

/** The slot that holds the number, or the empty one where it would go. */
function seek(set: usize, hi: u64, lo: u64): u32 {
  let index = homeOf(set, hi, lo);
  while (true) {
    const slot = sparseSlot(set, index);
    const slotHi = load<u64>(slot);
    const slotLo = load<u64>(slot, LO);
    if ((slotHi == hi && slotLo == lo) || (slotHi | slotLo) == 0) return index;
    index = (index + 1) & (load<u32>(set) - 1);
  }
}

function isEmpty(slot: usize): bool {
  return (load<u64>(slot) | load<u64>(slot, LO)) == 0;
}

export function sparseHas(set: usize, hi: u64, lo: u64): bool {
  return set != 0 && !isEmpty(sparseSlot(set, seek(set, hi, lo)));
}

/** A set with room for one more: this one, or a larger copy that replaces it; 0 when there is no memory. */
export function sparseReserve(set: usize): usize {
  const capacity = sparseCapacity(set);
  if (set != 0 && sparseCount(set) * 2 < capacity) return set;
  const larger = createSparse(capacity == 0 ? FIRST_CAPACITY : capacity * 2);
  if (larger == 0) return 0;
  for (let index = sparseNext(set, 0); index < capacity; index = sparseNext(set, index + 1)) {
    const slot = sparseSlot(set, index);
    sparseAdd(larger, load<u64>(slot), load<u64>(slot, LO));
  }
  freeSparse(set);
  return larger;
}

/** Adds a number that is not there; there is room for it. */
export function sparseAdd(set: usize, hi: u64, lo: u64): void {
  const slot = sparseSlot(set, seek(set, hi, lo));
  store<u64>(slot, hi);
  store<u64>(slot, lo, LO);
  store<u32>(set, load<u32>(set, COUNT) + 1, COUNT);
}

/** Removes a number that is there, and moves up those that probed past it. */
export function sparseRemove(set: usize, hi: u64, lo: u64): void {
  const wrap = load<u32>(set) - 1;
  let hole = seek(set, hi, lo);
  let index = hole;
  while (true) {
    index = (index + 1) & wrap;
    const slot = sparseSlot(set, index);
    if (isEmpty(slot)) break;
    const home = homeOf(set, load<u64>(slot), load<u64>(slot, LO));
    if (((index - home) & wrap) >= ((index - hole) & wrap)) {
      memory.copy(sparseSlot(set, hole), slot, SLOT_BYTES);
      hole = index;
    }
  }
  memory.fill(sparseSlot(set, hole), 0, SLOT_BYTES);
  store<u32>(set, load<u32>(set, COUNT) - 1, COUNT);
}
