/**
 * Allocation policies: where in a pool's window to look for a free ordinal.
 * Called by the ABI. Searching marks nothing.
 * Effects: none.
 */
import { NONE } from "./abi";
import { findFree, windowOf } from "./bitmap";
import { bitmapOf } from "./pool";

/** The first free ordinal at or after `start` modulo the window, wrapping once; NONE when all are taken. */
export function findFrom(pool: usize, start: u32): i32 {
  const bitmap = bitmapOf(pool);
  const window = windowOf(bitmap);
  if (window == 0) return NONE;
  const found = findFree(bitmap, start % window);
  return found == NONE ? findFree(bitmap, 0) : found;
}
