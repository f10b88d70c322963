/**
 * The raw exports of the core. Written from assembly/abi.json by the unit tests (UPDATE_VECTORS=1), never by hand.
 * Used by host/core, and through the package berth-core by whoever wants ordinals; docs/wasm-abi.md has inputs, outputs and statuses.
 * Effects: none.
 */

/** All parameters and results are i32, or u32 where all 32 bits count; a result below 0 is a status. */
export interface CoreExports {
  readonly memory: WebAssembly.Memory;
  /** The version of this ABI. */
  abi_version(): number;
  /** Makes the exchange buffer at least so long. Its contents survive, it may move. */
  exchange(bytes: number): number;
  /** The length of the exchange buffer. */
  exchange_size(): number;
  /** Ends a set or a pool and gives its memory back. */
  drop(handle: number): number;
  /** How much of the memory, from address 0, is in use. A copy of it in a fresh instance, grown to the same size, is an equal instance. */
  state_bytes(): number;
  /** Sets and pools that are not dropped. */
  live_objects(): number;
  /** The lowest address of the prefix that holds the address. With a shorter length: the supernet. */
  prefix_first(family: number, length: number): number;
  /** The highest address of the prefix that holds the address. */
  prefix_last(family: number, length: number): number;
  /** The network mask of that length. */
  prefix_mask(family: number, length: number): number;
  /** The first address of the prefix after the one that holds the address. */
  prefix_next(family: number, length: number): number;
  /** The first address of one part of the prefix, when it is split into prefixes of a greater length. */
  prefix_part(family: number, length: number, part_length: number, index: number): number;
  /** The longest prefix that holds both addresses. */
  prefix_common(family: number): number;
  /** A set of ranges, which may overlap and stand in any order. */
  set_create(family: number, count: number): number;
  /** A set of prefixes, which may overlap and stand in any order. Host bits are ignored. */
  set_create_prefixes(family: number, count: number): number;
  /** The addresses of either set. */
  set_union(a: number, b: number): number;
  /** The addresses of both sets. */
  set_intersect(a: number, b: number): number;
  /** The addresses of `a` that are not in `b`. */
  set_subtract(a: number, b: number): number;
  /** Whether the sets share an address. */
  set_overlaps(a: number, b: number): number;
  /** Whether every address of `b` is in `a`. */
  set_includes(a: number, b: number): number;
  /** Whether the address is in the set. */
  set_contains(set: number): number;
  /** Which addresses are in the set. */
  set_contains_many(set: number, count: number): number;
  /** The fewest ranges that make up the set. */
  set_count(set: number): number;
  /** The number of addresses. */
  set_size(set: number): number;
  /** The ranges, ascending; no two overlap or touch. */
  set_ranges(set: number): number;
  /** The fewest prefixes that cover exactly the set, ascending. */
  set_prefixes(set: number): number;
  /** A pool over the ranges with nothing used. The sets are copied. Masks outside the ranges do not matter. */
  pool_create(ranges: number, masks: number): number;
  /** Gives the pool another shape. What is used stays used wherever its address is in the new ranges, else it is forgotten. Order of release and round robin go on. On failure nothing changes. */
  pool_edit(pool: number, ranges: number, masks: number): number;
  /** From now on remembers the order in which addresses of the window become free. */
  pool_track_freed(pool: number): number;
  /** What the pool holds, in numbers. */
  pool_counts(pool: number): number;
  /** Free ordinals of each block of 4,096, the last one perhaps shorter. */
  pool_blocks(pool: number): number;
  /** A copy of the pool's ranges. */
  pool_ranges(pool: number): number;
  /** A copy of the pool's masks, as far as they lie in the ranges. */
  pool_masks(pool: number): number;
  /** What is used, masked or not. */
  pool_used(pool: number): number;
  /** A snapshot of what is used, and of the place of round robin. */
  pool_save(pool: number): number;
  /** Replaces what is used by what a snapshot of a pool with the same ranges says. On failure nothing changes. */
  pool_load(pool: number, length: number): number;
  /** Whether the address is in the ranges and not masked. */
  pool_contains(pool: number): number;
  /** Whether the address is used. */
  pool_test(pool: number): number;
  /** Marks the address used; a masked one too. */
  pool_claim(pool: number): number;
  /** Marks the address not used. */
  pool_release(pool: number): number;
  /** pool_contains for each address. A failure ends the batch; those before it are done. */
  pool_contains_many(pool: number, count: number): number;
  /** pool_test for each address. A failure ends the batch; those before it are done. */
  pool_test_many(pool: number, count: number): number;
  /** pool_claim for each address. A failure ends the batch; those before it are done. */
  pool_claim_many(pool: number, count: number): number;
  /** pool_release for each address. A failure ends the batch; those before it are done. */
  pool_release_many(pool: number, count: number): number;
  /** pool_test by ordinal, below the window. */
  pool_test_at(pool: number, ordinal: number): number;
  /** pool_claim by ordinal, below the window. */
  pool_claim_at(pool: number, ordinal: number): number;
  /** pool_release by ordinal, below the window. */
  pool_release_at(pool: number, ordinal: number): number;
  /** pool_test_at for each ordinal. A failure ends the batch; those before it are done. */
  pool_test_at_many(pool: number, count: number): number;
  /** pool_claim_at for each ordinal. A failure ends the batch; those before it are done. */
  pool_claim_at_many(pool: number, count: number): number;
  /** pool_release_at for each ordinal. A failure ends the batch; those before it are done. */
  pool_release_at_many(pool: number, count: number): number;
  /** Marks consecutive ordinals used, all or none. */
  pool_claim_run(pool: number, first: number, count: number): number;
  /** Marks consecutive ordinals not used. */
  pool_release_run(pool: number, first: number, count: number): number;
  /** The address of an ordinal below the window. */
  pool_address(pool: number, ordinal: number): number;
  /** The ordinal of the address; OUTSIDE for one beyond the window, too. */
  pool_ordinal(pool: number): number;
  /** The first free ordinal at or after `start` modulo the window, wrapping once. Marks nothing. */
  pool_find(pool: number, start: number): number;
  /** Finds a free ordinal by a policy and marks it used. */
  pool_allocate(pool: number, policy: number, argument: number): number;
  /** pool_allocate so many times; HASHED goes on after the one before. Fewer when no more are free, or memory is out. */
  pool_allocate_many(pool: number, policy: number, argument: number, count: number): number;
  /** The first of `count` free ordinals whose addresses follow one another, the first a multiple of 2^align_bits; from `start` modulo the window on, wrapping once. Marks nothing. */
  pool_find_run(pool: number, start: number, count: number, align_bits: number): number;
  /** The first free address in hashed order over all ordinals, those beyond the window too. Starts at the seed's low bits, as many as the largest ordinal has, less the size when that is too large; wraps once. Marks nothing. */
  pool_find_wide(pool: number): number;
}

/** Major and minor version of the ABI that this file describes. */
export const ABI_VERSION = { major: 1, minor: 0 };

export const Status = {
  /** Done; for operations without another result. */
  OK: 0,
  /** No live object of the wanted kind has this handle. */
  BAD_HANDLE: -1,
  /** A family other than 4 and 6, or two objects of different families. */
  BAD_FAMILY: -2,
  /** A range whose first address is above its last. */
  BAD_RANGE: -3,
  /** A count, length, policy or alignment outside what the operation allows. */
  BAD_ARGUMENT: -4,
  /** The exchange buffer is shorter than the input that the arguments promise, or than the output. */
  SHORT_EXCHANGE: -5,
  /** Linear memory cannot grow any further. Nothing has changed. */
  NO_MEMORY: -6,
  /** A ceiling, below, is reached. Nothing has changed. */
  OVER_CEILING: -7,
  /** The address or ordinal lies outside the pool's ranges, or window. */
  OUTSIDE: -8,
  /** Nothing of the kind asked for is there. */
  NONE: -9,
  /** A snapshot that is damaged or cut short. */
  BAD_SNAPSHOT: -10,
  /** A snapshot of another version of the format. */
  OTHER_VERSION: -11,
  /** A sound snapshot of a pool with other ranges. */
  OTHER_POOL: -12,
} as const;

export const Policy = {
  /** The lowest free ordinal. */
  ASCENDING: 0,
  /** The next free ordinal after the last one that this policy took. */
  ROUND_ROBIN: 1,
  /** The first free ordinal at or after the argument modulo the window: sticky and spread out when it is a hash. */
  HASHED: 2,
  /** Ordinals never freed since pool_track_freed, ascending; then those freed longest ago. */
  LEAST_RECENTLY_FREED: 3,
} as const;

/** Where each number stands in the output of pool_counts, in bytes from its start; little-endian unless stated. */
export const CountOffset = {
  /** 17 bytes, big-endian: addresses in the ranges */
  size: 0,
  /** 17 bytes, big-endian: of them, masked */
  masked: 17,
  /** u32: ordinals in the bitmap */
  window: 36,
  /** u32: used addresses, masked or not, in the window or beyond */
  used: 40,
  /** u32: of them, masked */
  usedMasked: 44,
  /** u32: used addresses beyond the window */
  beyond: 48,
  /** u32: ordinals of the window that are neither used nor masked */
  free: 52,
  /** u32: bitmap chunks present, 1,032 bytes each */
  chunks: 56,
  /** u32: entries in the order of release */
  ring: 60,
  /** u64: digest of the ranges, as snapshots bear it */
  digest: 64,
} as const;
