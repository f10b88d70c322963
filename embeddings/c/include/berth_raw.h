/*
 * The calls of the core as they are, for whoever wants ordinals or the exchange buffer.
 * Written from assembly/abi.json, never by hand.
 *
 * A result below 0 is a status. Input is read from the start of the exchange buffer and output is written there.
 * Any call may move the buffer: ask berth_raw_exchange(core, 0) again, and berth_core_memory for its place in this process.
 * Addresses there are big-endian, other numbers little-endian unless stated.
 */
#ifndef BERTH_RAW_H
#define BERTH_RAW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* One instance; berth_core_open makes it. */
struct berth_core;

/* The version of the ABI that this header describes. */
enum { BERTH_ABI_MAJOR = 1, BERTH_ABI_MINOR = 0 };

/* What a function answers below 0. */
enum berth_status {
    /* Done; for operations without another result. */
    BERTH_STATUS_OK = 0,
    /* No live object of the wanted kind has this handle. */
    BERTH_STATUS_BAD_HANDLE = -1,
    /* A family other than 4 and 6, or two objects of different families. */
    BERTH_STATUS_BAD_FAMILY = -2,
    /* A range whose first address is above its last. */
    BERTH_STATUS_BAD_RANGE = -3,
    /* A count, length, policy or alignment outside what the operation allows. */
    BERTH_STATUS_BAD_ARGUMENT = -4,
    /* The exchange buffer is shorter than the input that the arguments promise, or than the output. */
    BERTH_STATUS_SHORT_EXCHANGE = -5,
    /* Linear memory cannot grow any further. Nothing has changed. */
    BERTH_STATUS_NO_MEMORY = -6,
    /* A ceiling, below, is reached. Nothing has changed. */
    BERTH_STATUS_OVER_CEILING = -7,
    /* The address or ordinal lies outside the pool's ranges, or window. */
    BERTH_STATUS_OUTSIDE = -8,
    /* Nothing of the kind asked for is there. */
    BERTH_STATUS_NONE = -9,
    /* A snapshot that is damaged or cut short. */
    BERTH_STATUS_BAD_SNAPSHOT = -10,
    /* A snapshot of another version of the format. */
    BERTH_STATUS_OTHER_VERSION = -11,
    /* A sound snapshot of a pool with other ranges. */
    BERTH_STATUS_OTHER_POOL = -12,
};

/* In which order free addresses of the window are taken. */
enum berth_policy {
    /* The lowest free ordinal. */
    BERTH_ASCENDING = 0,
    /* The next free ordinal after the last one that this policy took. */
    BERTH_ROUND_ROBIN = 1,
    /* The first free ordinal at or after the argument modulo the window: sticky and spread out when it is a hash. */
    BERTH_HASHED = 2,
    /* Ordinals never freed since pool_track_freed, ascending; then those freed longest ago. */
    BERTH_LEAST_RECENTLY_FREED = 3,
};

/* Ceilings of one instance. */
enum {
    /* Ordinals in the bitmap of one pool; those beyond are claimed one by one into a sparse set. */
    BERTH_MAX_WINDOW = 16777216,
    /* Used addresses beyond the window, per pool. */
    BERTH_MAX_SPARSE = 1048576,
    /* Ranges in a set; also used runs for pool_used. */
    BERTH_MAX_RANGES = 1048576,
    /* Live sets and pools. */
    BERTH_MAX_OBJECTS = 65536,
    /* Bytes of the exchange buffer. */
    BERTH_MAX_EXCHANGE = 268435456,
};

/* Where each number stands in the output of berth_raw_pool_counts, in bytes from its start. */
enum {
    /* 17 bytes, big-endian: addresses in the ranges */
    BERTH_COUNTS_AT_SIZE = 0,
    /* 17 bytes, big-endian: of them, masked */
    BERTH_COUNTS_AT_MASKED = 17,
    /* u32: ordinals in the bitmap */
    BERTH_COUNTS_AT_WINDOW = 36,
    /* u32: used addresses, masked or not, in the window or beyond */
    BERTH_COUNTS_AT_USED = 40,
    /* u32: of them, masked */
    BERTH_COUNTS_AT_USED_MASKED = 44,
    /* u32: used addresses beyond the window */
    BERTH_COUNTS_AT_BEYOND = 48,
    /* u32: ordinals of the window that are neither used nor masked */
    BERTH_COUNTS_AT_FREE = 52,
    /* u32: bitmap chunks present, 1,032 bytes each */
    BERTH_COUNTS_AT_CHUNKS = 56,
    /* u32: entries in the order of release */
    BERTH_COUNTS_AT_RING = 60,
    /* u64: digest of the ranges, as snapshots bear it */
    BERTH_COUNTS_AT_DIGEST = 64,
};

/* The meaning of a status as a sentence, and its name ("BAD_HANDLE"). Never NULL; any number is allowed. */
const char *berth_strerror(int status);
const char *berth_status_name(int status);

/*
 * The version of this ABI.
 * result: major << 16 | minor
 */
int32_t berth_raw_abi_version(struct berth_core *core);

/*
 * Makes the exchange buffer at least so long. Its contents survive, it may move.
 * bytes: least length in bytes; 0 only asks where it is
 * result: address of the buffer; or BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_exchange(struct berth_core *core, int32_t bytes);

/*
 * The length of the exchange buffer.
 * result: bytes, a power of two; 0 before the first exchange()
 */
int32_t berth_raw_exchange_size(struct berth_core *core);

/*
 * Ends a set or a pool and gives its memory back.
 * handle: set or pool handle
 * result: 0; or BAD_HANDLE
 */
int32_t berth_raw_drop(struct berth_core *core, int32_t handle);

/*
 * How much of the memory, from address 0, is in use. A copy of it in a fresh instance, grown to the same size, is an equal
 * instance.
 * result: bytes
 */
int32_t berth_raw_state_bytes(struct berth_core *core);

/*
 * Sets and pools that are not dropped.
 * result: their number
 */
int32_t berth_raw_live_objects(struct berth_core *core);

/*
 * The lowest address of the prefix that holds the address. With a shorter length: the supernet.
 * family: 4 or 6
 * length: prefix length, 0 to 32 or 128
 * exchange before: 1 address
 * exchange after: 1 address
 * result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
 */
int32_t berth_raw_prefix_first(struct berth_core *core, int32_t family, int32_t length);

/*
 * The highest address of the prefix that holds the address.
 * family: 4 or 6
 * length: prefix length, 0 to 32 or 128
 * exchange before: 1 address
 * exchange after: 1 address
 * result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
 */
int32_t berth_raw_prefix_last(struct berth_core *core, int32_t family, int32_t length);

/*
 * The network mask of that length.
 * family: 4 or 6
 * length: prefix length, 0 to 32 or 128
 * exchange after: 1 address
 * result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
 */
int32_t berth_raw_prefix_mask(struct berth_core *core, int32_t family, int32_t length);

/*
 * The first address of the prefix after the one that holds the address.
 * family: 4 or 6
 * length: prefix length, 0 to 32 or 128
 * exchange before: 1 address
 * exchange after: 1 address
 * result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, NONE
 */
int32_t berth_raw_prefix_next(struct berth_core *core, int32_t family, int32_t length);

/*
 * The first address of one part of the prefix, when it is split into prefixes of a greater length.
 * family: 4 or 6
 * length: prefix length, 0 to 32 or 128
 * part_length: length of the parts, at least `length`
 * index: u32, which part, from 0
 * exchange before: 1 address
 * exchange after: 1 address
 * result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, OUTSIDE
 */
int32_t berth_raw_prefix_part(struct berth_core *core, int32_t family, int32_t length, int32_t part_length, uint32_t index);

/*
 * The longest prefix that holds both addresses.
 * family: 4 or 6
 * exchange before: 2 addresses
 * result: its length; or BAD_FAMILY, SHORT_EXCHANGE
 */
int32_t berth_raw_prefix_common(struct berth_core *core, int32_t family);

/*
 * A set of ranges, which may overlap and stand in any order.
 * family: 4 or 6
 * count: number of items in the exchange buffer
 * exchange before: count × (first address, last address), inclusive
 * result: set handle; or BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY, BAD_RANGE
 */
int32_t berth_raw_set_create(struct berth_core *core, int32_t family, int32_t count);

/*
 * A set of prefixes, which may overlap and stand in any order. Host bits are ignored.
 * family: 4 or 6
 * count: number of items in the exchange buffer
 * exchange before: count × (address, length u8)
 * result: set handle; or BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY, BAD_ARGUMENT
 */
int32_t berth_raw_set_create_prefixes(struct berth_core *core, int32_t family, int32_t count);

/*
 * The addresses of either set.
 * a: set handle
 * b: set handle
 * result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_set_union(struct berth_core *core, int32_t a, int32_t b);

/*
 * The addresses of both sets.
 * a: set handle
 * b: set handle
 * result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_set_intersect(struct berth_core *core, int32_t a, int32_t b);

/*
 * The addresses of `a` that are not in `b`.
 * a: set handle
 * b: set handle
 * result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_set_subtract(struct berth_core *core, int32_t a, int32_t b);

/*
 * Whether the sets share an address.
 * a: set handle
 * b: set handle
 * result: 1 or 0; or BAD_HANDLE, BAD_FAMILY
 */
int32_t berth_raw_set_overlaps(struct berth_core *core, int32_t a, int32_t b);

/*
 * Whether every address of `b` is in `a`.
 * a: set handle
 * b: set handle
 * result: 1 or 0; or BAD_HANDLE, BAD_FAMILY
 */
int32_t berth_raw_set_includes(struct berth_core *core, int32_t a, int32_t b);

/*
 * Whether the address is in the set.
 * set: set handle
 * exchange before: 1 address
 * result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_set_contains(struct berth_core *core, int32_t set);

/*
 * Which addresses are in the set.
 * set: set handle
 * count: number of items in the exchange buffer
 * exchange before: count addresses
 * exchange after: count × u8, 1 or 0
 * result: how many are in the set; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_set_contains_many(struct berth_core *core, int32_t set, int32_t count);

/*
 * The fewest ranges that make up the set.
 * set: set handle
 * result: their number; or BAD_HANDLE
 */
int32_t berth_raw_set_count(struct berth_core *core, int32_t set);

/*
 * The number of addresses.
 * set: set handle
 * exchange after: 17 bytes, big-endian
 * result: 17; or BAD_HANDLE, NO_MEMORY
 */
int32_t berth_raw_set_size(struct berth_core *core, int32_t set);

/*
 * The ranges, ascending; no two overlap or touch.
 * set: set handle
 * exchange after: result × (first address, last address)
 * result: number of ranges; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_set_ranges(struct berth_core *core, int32_t set);

/*
 * The fewest prefixes that cover exactly the set, ascending.
 * set: set handle
 * exchange after: result × (address, length u8)
 * result: number of prefixes; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_set_prefixes(struct berth_core *core, int32_t set);

/*
 * A pool over the ranges with nothing used. The sets are copied. Masks outside the ranges do not matter.
 * ranges: set handle
 * masks: set handle, of the same family
 * result: pool handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_create(struct berth_core *core, int32_t ranges, int32_t masks);

/*
 * Gives the pool another shape. What is used stays used wherever its address is in the new ranges, else it is forgotten. Order
 * of release and round robin go on. On failure nothing changes.
 * pool: pool handle
 * ranges: set handle
 * masks: set handle, of the same family
 * result: 0; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_edit(struct berth_core *core, int32_t pool, int32_t ranges, int32_t masks);

/*
 * From now on remembers the order in which addresses of the window become free.
 * pool: pool handle
 * result: 0; or BAD_HANDLE, NO_MEMORY
 */
int32_t berth_raw_pool_track_freed(struct berth_core *core, int32_t pool);

/*
 * What the pool holds, in numbers.
 * pool: pool handle
 * exchange after: 72 bytes, below
 * result: 72; or BAD_HANDLE, NO_MEMORY
 */
int32_t berth_raw_pool_counts(struct berth_core *core, int32_t pool);

/*
 * Free ordinals of each block of 4,096, the last one perhaps shorter.
 * pool: pool handle
 * exchange after: result × u16
 * result: number of blocks; or BAD_HANDLE, NO_MEMORY
 */
int32_t berth_raw_pool_blocks(struct berth_core *core, int32_t pool);

/*
 * A copy of the pool's ranges.
 * pool: pool handle
 * result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_ranges(struct berth_core *core, int32_t pool);

/*
 * A copy of the pool's masks, as far as they lie in the ranges.
 * pool: pool handle
 * result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_masks(struct berth_core *core, int32_t pool);

/*
 * What is used, masked or not.
 * pool: pool handle
 * result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_used(struct berth_core *core, int32_t pool);

/*
 * A snapshot of what is used, and of the place of round robin.
 * pool: pool handle
 * exchange after: result bytes, format below
 * result: length in bytes; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_save(struct berth_core *core, int32_t pool);

/*
 * Replaces what is used by what a snapshot of a pool with the same ranges says. On failure nothing changes.
 * pool: pool handle
 * length: bytes of the snapshot
 * exchange before: the snapshot
 * result: 0; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, BAD_SNAPSHOT, OTHER_VERSION, OTHER_POOL
 */
int32_t berth_raw_pool_load(struct berth_core *core, int32_t pool, int32_t length);

/*
 * Whether the address is in the ranges and not masked.
 * pool: pool handle
 * exchange before: 1 address
 * result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_pool_contains(struct berth_core *core, int32_t pool);

/*
 * Whether the address is used.
 * pool: pool handle
 * exchange before: 1 address
 * result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
 */
int32_t berth_raw_pool_test(struct berth_core *core, int32_t pool);

/*
 * Marks the address used; a masked one too.
 * pool: pool handle
 * exchange before: 1 address
 * result: 1 newly marked, 0 it was used; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_claim(struct berth_core *core, int32_t pool);

/*
 * Marks the address not used.
 * pool: pool handle
 * exchange before: 1 address
 * result: 1 it was used, 0 it was not; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
 */
int32_t berth_raw_pool_release(struct berth_core *core, int32_t pool);

/*
 * pool_contains for each address. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count addresses
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_pool_contains_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * pool_test for each address. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count addresses
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_pool_test_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * pool_claim for each address. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count addresses
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_claim_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * pool_release for each address. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count addresses
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_pool_release_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * pool_test by ordinal, below the window.
 * pool: pool handle
 * ordinal: u32
 * result: 1 or 0; or BAD_HANDLE, OUTSIDE
 */
int32_t berth_raw_pool_test_at(struct berth_core *core, int32_t pool, uint32_t ordinal);

/*
 * pool_claim by ordinal, below the window.
 * pool: pool handle
 * ordinal: u32
 * result: 1 newly marked, 0 it was used; or BAD_HANDLE, OUTSIDE, NO_MEMORY
 */
int32_t berth_raw_pool_claim_at(struct berth_core *core, int32_t pool, uint32_t ordinal);

/*
 * pool_release by ordinal, below the window.
 * pool: pool handle
 * ordinal: u32
 * result: 1 it was used, 0 it was not; or BAD_HANDLE, OUTSIDE
 */
int32_t berth_raw_pool_release_at(struct berth_core *core, int32_t pool, uint32_t ordinal);

/*
 * pool_test_at for each ordinal. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count × u32
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_pool_test_at_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * pool_claim_at for each ordinal. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count × u32
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY
 */
int32_t berth_raw_pool_claim_at_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * pool_release_at for each ordinal. A failure ends the batch; those before it are done.
 * pool: pool handle
 * count: number of items in the exchange buffer
 * exchange before: count × u32
 * exchange after: count × i8: the result for each, or its status; from a failure on, that status
 * result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
 */
int32_t berth_raw_pool_release_at_many(struct berth_core *core, int32_t pool, int32_t count);

/*
 * Marks consecutive ordinals used, all or none.
 * pool: pool handle
 * first: u32 ordinal
 * count: 1 or more
 * result: 1 done, 0 one of them is not free; or BAD_HANDLE, BAD_ARGUMENT, OUTSIDE, NO_MEMORY
 */
int32_t berth_raw_pool_claim_run(struct berth_core *core, int32_t pool, uint32_t first, int32_t count);

/*
 * Marks consecutive ordinals not used.
 * pool: pool handle
 * first: u32 ordinal
 * count: 1 or more
 * result: how many were used; or BAD_HANDLE, BAD_ARGUMENT, OUTSIDE
 */
int32_t berth_raw_pool_release_run(struct berth_core *core, int32_t pool, uint32_t first, int32_t count);

/*
 * The address of an ordinal below the window.
 * pool: pool handle
 * ordinal: u32
 * exchange after: 1 address
 * result: 0; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
 */
int32_t berth_raw_pool_address(struct berth_core *core, int32_t pool, uint32_t ordinal);

/*
 * The ordinal of the address; OUTSIDE for one beyond the window, too.
 * pool: pool handle
 * exchange before: 1 address
 * result: ordinal; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
 */
int32_t berth_raw_pool_ordinal(struct berth_core *core, int32_t pool);

/*
 * The first free ordinal at or after `start` modulo the window, wrapping once. Marks nothing.
 * pool: pool handle
 * start: u32
 * result: ordinal; or BAD_HANDLE, NONE
 */
int32_t berth_raw_pool_find(struct berth_core *core, int32_t pool, uint32_t start);

/*
 * Finds a free ordinal by a policy and marks it used.
 * pool: pool handle
 * policy: a policy, below
 * argument: u32; HASHED: the seed; else unused
 * result: ordinal; or BAD_HANDLE, BAD_ARGUMENT, NONE, NO_MEMORY
 */
int32_t berth_raw_pool_allocate(struct berth_core *core, int32_t pool, int32_t policy, uint32_t argument);

/*
 * pool_allocate so many times; HASHED goes on after the one before. Fewer when no more are free, or memory is out.
 * pool: pool handle
 * policy: a policy, below
 * argument: u32; HASHED: the seed; else unused
 * count: how many, 0 or more
 * exchange after: result addresses
 * result: how many are allocated; or BAD_HANDLE, BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
 */
int32_t berth_raw_pool_allocate_many(struct berth_core *core, int32_t pool, int32_t policy, uint32_t argument, int32_t count);

/*
 * The first of `count` free ordinals whose addresses follow one another, the first a multiple of 2^align_bits; from `start`
 * modulo the window on, wrapping once. Marks nothing.
 * pool: pool handle
 * start: u32
 * count: 1 or more
 * align_bits: 0 to 24
 * result: ordinal; or BAD_HANDLE, BAD_ARGUMENT, NONE
 */
int32_t berth_raw_pool_find_run(struct berth_core *core, int32_t pool, uint32_t start, int32_t count, int32_t align_bits);

/*
 * The first free address in hashed order over all ordinals, those beyond the window too. Starts at the seed's low bits, as
 * many as the largest ordinal has, less the size when that is too large; wraps once. Marks nothing.
 * pool: pool handle
 * exchange before: 16 bytes, big-endian: the seed
 * exchange after: 1 address
 * result: 0; or BAD_HANDLE, SHORT_EXCHANGE, NONE
 */
int32_t berth_raw_pool_find_wide(struct berth_core *core, int32_t pool);

/* X(name, number of parameters) for every export: for a table of them. */
#define BERTH_RAW_EXPORTS(X) \
    X(abi_version, 0) \
    X(exchange, 1) \
    X(exchange_size, 0) \
    X(drop, 1) \
    X(state_bytes, 0) \
    X(live_objects, 0) \
    X(prefix_first, 2) \
    X(prefix_last, 2) \
    X(prefix_mask, 2) \
    X(prefix_next, 2) \
    X(prefix_part, 4) \
    X(prefix_common, 1) \
    X(set_create, 2) \
    X(set_create_prefixes, 2) \
    X(set_union, 2) \
    X(set_intersect, 2) \
    X(set_subtract, 2) \
    X(set_overlaps, 2) \
    X(set_includes, 2) \
    X(set_contains, 1) \
    X(set_contains_many, 2) \
    X(set_count, 1) \
    X(set_size, 1) \
    X(set_ranges, 1) \
    X(set_prefixes, 1) \
    X(pool_create, 2) \
    X(pool_edit, 3) \
    X(pool_track_freed, 1) \
    X(pool_counts, 1) \
    X(pool_blocks, 1) \
    X(pool_ranges, 1) \
    X(pool_masks, 1) \
    X(pool_used, 1) \
    X(pool_save, 1) \
    X(pool_load, 2) \
    X(pool_contains, 1) \
    X(pool_test, 1) \
    X(pool_claim, 1) \
    X(pool_release, 1) \
    X(pool_contains_many, 2) \
    X(pool_test_many, 2) \
    X(pool_claim_many, 2) \
    X(pool_release_many, 2) \
    X(pool_test_at, 2) \
    X(pool_claim_at, 2) \
    X(pool_release_at, 2) \
    X(pool_test_at_many, 2) \
    X(pool_claim_at_many, 2) \
    X(pool_release_at_many, 2) \
    X(pool_claim_run, 3) \
    X(pool_release_run, 3) \
    X(pool_address, 2) \
    X(pool_ordinal, 1) \
    X(pool_find, 2) \
    X(pool_allocate, 3) \
    X(pool_allocate_many, 4) \
    X(pool_find_run, 4) \
    X(pool_find_wide, 1)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
