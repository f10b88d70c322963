/**
 * Blocks of linear memory: power-of-two sizes, each with a free list.
 * Called by whatever owns memory. Blocks are freed with the size they were asked for. Fresh memory is zero and
 * untouched, so an unused block costs no resident memory.
 * Effects: linear memory; may grow it.
 */
import { FREE_LISTS, HEAP_START, HEAP_USED } from "../abi";

/** Memory grows in steps of 1 MiB. */
const STEP_PAGES: u32 = 16;
const MIN_CLASS: u32 = 5;
const MAX_CLASS: u32 = 30;

/** The smallest class whose blocks hold `bytes`; above MAX_CLASS when none does. */
function classOf(bytes: u32): u32 {
  if (bytes <= 1 << MIN_CLASS) return MIN_CLASS;
  return 32 - clz<u32>(bytes - 1);
}

/** Takes `bytes` from the top of the heap; 0 when memory cannot grow so far. */
function extend(bytes: u32): usize {
  const start = <u64>HEAP_START + load<u32>(HEAP_USED);
  const end = start + bytes;
  const pages = <i32>((end + 0xffff) >> 16);
  const missing = pages - memory.size();
  if (missing > 0) {
    const step = (missing + STEP_PAGES - 1) & ~(STEP_PAGES - 1);
    if (memory.grow(step) < 0) return 0;
  }
  store<u32>(HEAP_USED, <u32>(end - HEAP_START));
  return <usize>start;
}

function takeBlock(bytes: u32, zeroed: bool): usize {
  const list = classOf(bytes);
  if (list > MAX_CLASS) return 0;
  const head = FREE_LISTS + (list << 2);
  const block = load<u32>(head);
  if (block == 0) return extend(1 << list);
  store<u32>(head, load<u32>(block));
  if (zeroed) memory.fill(block, 0, 1 << list);
  return block;
}

/** A block of at least `bytes`, contents undefined; 0 when there is no memory. */
export function allocate(bytes: u32): usize {
  return takeBlock(bytes, false);
}

/** Like {@link allocate}, all bytes zero. */
export function allocateZeroed(bytes: u32): usize {
  return takeBlock(bytes, true);
}

/** Gives back a block that was allocated with the same `bytes`; 0 is no block and ignored. */
export function free(block: usize, bytes: u32): void {
  if (block == 0) return;
  const head = FREE_LISTS + (classOf(bytes) << 2);
  store<u32>(block, load<u32>(head));
  store<u32>(head, <u32>block);
}
