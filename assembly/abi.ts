/**
 * The memory map and the words of the ABI: status codes, ceilings, layouts of the objects in linear memory.
 * Read by every file of the core; docs/develop/wasm-abi.md draws it.
 *
 *    0 ┌──────────────────────────────┐
 *      │ header: tables, exchange     │  all zero in a fresh instance, and valid so: there is no start function
 *   64 ├──────────────────────────────┤
 *      │ free lists, one per size     │
 *  256 ├──────────────────────────────┤
 *      │ heap: sets, pools, chunks,   │
 *      │ handle table, exchange       │
 *  top └──────────────────────────────┘  top = 256 + load(HEAP_USED)
 */

/** Major << 16 | minor: another major breaks callers, another minor only adds. */
export const ABI_VERSION: i32 = (1 << 16) | 0;

// Status codes. Results ≥ 0 are successes; every failure is one of these, and nothing traps.
export const OK: i32 = 0;
/** No live object of the wanted kind has this handle. */
export const BAD_HANDLE: i32 = -1;
/** A family other than 4 and 6, or two objects of different families. */
export const BAD_FAMILY: i32 = -2;
/** A range whose first address is above its last. */
export const BAD_RANGE: i32 = -3;
/** An argument out of the operation's range: a count, an index, a policy. */
export const BAD_ARGUMENT: i32 = -4;
/** The exchange buffer is shorter than the input that the arguments promise. */
export const SHORT_EXCHANGE: i32 = -5;
/** Linear memory cannot grow any further. Nothing has changed. */
export const NO_MEMORY: i32 = -6;
/** A ceiling of this file is reached: ranges in a set, live objects, used addresses beyond the window. */
export const OVER_CEILING: i32 = -7;
/** The address or ordinal lies outside the pool's ranges. */
export const OUTSIDE: i32 = -8;
/** Nothing of the kind asked for is there. */
export const NONE: i32 = -9;
/** A snapshot that is damaged or cut short. */
export const BAD_SNAPSHOT: i32 = -10;
/** A snapshot of another version of the format. */
export const OTHER_VERSION: i32 = -11;
/** A sound snapshot of a pool with other ranges. */
export const OTHER_POOL: i32 = -12;

// Ceilings.
/** Ordinals in the bitmap of one pool: 2^24, an IPv4 /8. */
export const MAX_WINDOW: u32 = 1 << 24;
export const MAX_RANGES: u32 = 1 << 20;
export const MAX_OBJECTS: u32 = 1 << 16;
/** Used addresses beyond the window, per pool. */
export const MAX_SPARSE: u32 = 1 << 20;
export const MAX_EXCHANGE: u32 = 1 << 28;

// Header.
export const HEAP_USED: usize = 0;
export const TABLE: usize = 4;
export const TABLE_CAPACITY: usize = 8;
/** Index + 1 of the first slot that was freed; 0 = none. */
export const TABLE_FREE: usize = 12;
export const EXCHANGE: usize = 16;
export const EXCHANGE_SIZE: usize = 20;
export const LIVE_OBJECTS: usize = 24;
/** Slots that were ever in use. */
export const TABLE_USED: usize = 28;
/** Two 64-bit registers for the 128-bit results of internal functions. */
export const WIDE_HI: usize = 32;
export const WIDE_LO: usize = 40;
/** The place of a snapshot's reader, and the end of the snapshot. */
export const READ_AT: usize = 48;
export const READ_END: usize = 52;
export const FREE_LISTS: usize = 64;
export const HEAP_START: usize = 256;

// Kinds of objects.
export const KIND_SET: u32 = 1;
export const KIND_POOL: u32 = 2;
