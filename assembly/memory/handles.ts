/**
 * Handles: the numbers by which the host names sets and pools. A handle is generation << 16 | slot; it is
 * refused once its object is gone, and a forged one never reaches memory.
 * Effects: the handle table in linear memory; may grow memory.
 *
 *  slot, 8 bytes:  object u32, of a free slot the next free one + 1 │ kind u16 (0 = free) │ generation u16
 */
import {
  LIVE_OBJECTS,
  MAX_OBJECTS,
  NO_MEMORY,
  OK,
  OVER_CEILING,
  TABLE,
  TABLE_CAPACITY,
  TABLE_FREE,
  TABLE_USED,
} from "../abi";
import { allocateZeroed, free } from "./heap";

const SLOT_BYTES: u32 = 8;
/** Generation << 16 | kind: the handle's upper half and the kind of its object. */
const KEY: usize = 4;
const FIRST_CAPACITY: u32 = 64;

function slotAt(index: u32): usize {
  return load<u32>(TABLE) + index * SLOT_BYTES;
}

function grow(): i32 {
  const old = load<u32>(TABLE_CAPACITY);
  if (old >= MAX_OBJECTS) return OVER_CEILING;
  const capacity = old == 0 ? FIRST_CAPACITY : old << 1;
  const table = allocateZeroed(capacity * SLOT_BYTES);
  if (table == 0) return NO_MEMORY;
  memory.copy(table, load<u32>(TABLE), old * SLOT_BYTES);
  if (old != 0) free(load<u32>(TABLE), old * SLOT_BYTES);
  store<u32>(TABLE, <u32>table);
  store<u32>(TABLE_CAPACITY, capacity);
  return OK;
}

/** Makes room for one more object, so that the next {@link name} cannot fail. */
export function reserveHandle(): i32 {
  if (load<u32>(TABLE_FREE) != 0 || load<u32>(TABLE_USED) < load<u32>(TABLE_CAPACITY)) return OK;
  return grow();
}

/** The new handle of `object`; {@link reserveHandle} has succeeded before. */
export function name(object: usize, kind: u32): i32 {
  const freed = load<u32>(TABLE_FREE);
  const used = load<u32>(TABLE_USED);
  const index = freed == 0 ? used : freed - 1;
  const slot = slotAt(index);
  const generation = ((load<u32>(slot, KEY) >>> 16) % 0x7fff) + 1;
  if (freed == 0) store<u32>(TABLE_USED, used + 1);
  else store<u32>(TABLE_FREE, load<u32>(slot));
  store<u32>(slot, <u32>object);
  store<u32>(slot, (generation << 16) | kind, KEY);
  store<u32>(LIVE_OBJECTS, load<u32>(LIVE_OBJECTS) + 1);
  return <i32>((generation << 16) | index);
}

/** The object of a live handle of that kind; 0 when there is none. */
export function resolve(handle: i32, kind: u32): usize {
  const index = <u32>handle & 0xffff;
  if (index >= load<u32>(TABLE_CAPACITY)) return 0;
  const slot = slotAt(index);
  if (load<u32>(slot, KEY) != ((<u32>handle & 0xffff0000) | kind)) return 0;
  return load<u32>(slot);
}

/** Points a live handle at another object of the same kind. */
export function rename(handle: i32, object: usize): void {
  store<u32>(slotAt(<u32>handle & 0xffff), <u32>object);
}

/** Forgets a live handle. */
export function forget(handle: i32): void {
  const index = <u32>handle & 0xffff;
  const slot = slotAt(index);
  store<u32>(slot, load<u32>(TABLE_FREE));
  store<u16>(slot, 0, KEY);
  store<u32>(TABLE_FREE, index + 1);
  store<u32>(LIVE_OBJECTS, load<u32>(LIVE_OBJECTS) - 1);
}
