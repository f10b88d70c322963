/*
 * Pools and sets of IP addresses: which are used, which is free next. The library is the WebAssembly core of Berth as
 * C.
 *
 * Functions that answer `int` give a result of 0 or more, or a negative status: misuse or a ceiling (enum berth_status,
 * berth_strerror). What happens every day (taken, outside, none free) is a result. After a status nothing has
 * changed, unless stated. Out parameters are written on success only.
 *
 * Pools and sets are small values that name an object of their core. They may be copied; when the object is dropped,
 * every copy answers BERTH_STATUS_BAD_HANDLE. A core, with all its objects, is one thread's at a time; two cores
 * share nothing.
 *
 * Families are AF_INET and AF_INET6. "Packed" addresses are an array of struct in_addr or struct in6_addr, by the
 * family of the object. Counts are in addresses, not bytes.
 */
#ifndef BERTH_CORE_H
#define BERTH_CORE_H

#include <stddef.h>

#include "berth_raw.h"
#include "berth_ip.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * --- An instance ---------------------------------------------------------------------------------------------------
 */

/*
 * A fresh instance. NULL with errno ENOMEM, or ENOTSUP when the core in the library is of another ABI than its headers.
 */
struct berth_core *berth_core_open(void);

/*
 * An equal instance, which goes its own way; berth_pool_in and berth_set_in give its objects. NULL with errno ENOMEM.
 */
struct berth_core *berth_core_copy(const struct berth_core *core);

/* Ends the instance and all that is in it. NULL is allowed. */
void berth_core_close(struct berth_core *core);

/*
 * Returns the location, in this process, of an address that the core gave (berth_raw_exchange). The memory never
 * moves; it may grow.
 */
void *berth_core_memory(const struct berth_core *core, uint32_t address);

/* SHA-256, in hexadecimal, of the WebAssembly module that the library was made of. */
const char *berth_core_sha256(void);

/*
 * --- Sets of addresses ---------------------------------------------------------------------------------------------
 */

/* `handle` is what the functions of berth_raw.h call the set. */
struct berth_set {
    struct berth_core *core;
    int32_t handle;
    sa_family_t family;
};

/*
 * The addresses of ranges, which may overlap and stand in any order. BERTH_STATUS_BAD_FAMILY when one is of another
 * family.
 */
int berth_set_create(struct berth_core *core, sa_family_t family, const struct berth_range *ranges, size_t count,
                     struct berth_set *set);

/* The addresses of prefixes. Bits of the host are ignored. */
int berth_set_create_prefixes(struct berth_core *core, sa_family_t family, const struct berth_prefix *prefixes,
                              size_t count, struct berth_set *set);

/* New sets. BERTH_STATUS_BAD_FAMILY when the families differ, BERTH_STATUS_BAD_HANDLE when the cores do. */
int berth_set_union(const struct berth_set *a, const struct berth_set *b, struct berth_set *set);
int berth_set_intersect(const struct berth_set *a, const struct berth_set *b, struct berth_set *set);

/* The addresses of `a` that are not in `b`. */
int berth_set_subtract(const struct berth_set *a, const struct berth_set *b, struct berth_set *set);

/* 1 when the sets share an address, else 0. */
int berth_set_overlaps(const struct berth_set *a, const struct berth_set *b);

/* 1 when every address of `b` is in `a`, else 0. */
int berth_set_includes(const struct berth_set *a, const struct berth_set *b);

/* 1 when the address is in the set, else 0; one of the other family never is. */
int berth_set_contains(const struct berth_set *set, const struct berth_ip *ip);

/* Writes 1 or 0 for each packed address to `found`; how many are in the set. */
int berth_set_contains_many(const struct berth_set *set, const void *packed, size_t count, uint8_t *found);

/* The number of addresses. */
int berth_set_size(const struct berth_set *set, struct berth_size *size);

/* The number of ranges that berth_set_ranges gives. */
int berth_set_count(const struct berth_set *set);

/*
 * The fewest ranges, ascending; no two touch. Writes as many as `capacity` allows and gives how many there are: with
 * a capacity of 0 it only counts, and `ranges` may be NULL.
 */
int berth_set_ranges(const struct berth_set *set, struct berth_range *ranges, size_t capacity);

/* The fewest prefixes that cover exactly the set, ascending; `capacity` as before. */
int berth_set_prefixes(const struct berth_set *set, struct berth_prefix *prefixes, size_t capacity);

/* The same set in a copy of its core. */
struct berth_set berth_set_in(const struct berth_set *set, struct berth_core *copy);

/* Gives the memory back. */
int berth_set_drop(const struct berth_set *set);

/*
 * --- Pools: shape and state ----------------------------------------------------------------------------------------
 */

/* `handle` is what the functions of berth_raw.h call the pool. */
struct berth_pool {
    struct berth_core *core;
    int32_t handle;
    sa_family_t family;
};

/*
 * The parts of a pool. All ranges and masks are of one family; they may overlap and stand in any order. Masked
 * addresses (network, gateway, reserved) are never found, but may be claimed.
 */
struct berth_shape {
    const struct berth_range *ranges;
    size_t range_count;
    const struct berth_range *masks;
    size_t mask_count;
};

struct berth_counts {
    struct berth_size total; /* addresses in the ranges and not masked */
    struct berth_size free;  /* of them, not used */
    uint32_t used;           /* used addresses, masked ones too */
    uint32_t used_masked;    /* of them, masked */
    uint32_t beyond;         /* of the used ones, those beyond the window */
    uint32_t window;         /* ordinals in the bitmap, at most BERTH_MAX_WINDOW; the rest is found in wide order only */
    uint64_t digest;         /* names the ranges: pools with the same ranges take each other's snapshots */
};

/* Answers of berth_pool_load. */
enum berth_loaded { BERTH_LOADED, BERTH_DAMAGED, BERTH_OTHER_VERSION, BERTH_OTHER_POOL };

/* A pool with nothing used. A shape without any range is an IPv4 one. */
int berth_pool_create(struct berth_core *core, const struct berth_shape *shape, struct berth_pool *pool);

/*
 * Gives the pool another shape. What is used stays used wherever it is in the new ranges; the rest is forgotten. A
 * pool without addresses may change its family, and then has another handle, so that copies of `*pool` are stale.
 */
int berth_pool_edit(struct berth_pool *pool, const struct berth_shape *shape);

int berth_pool_counts(const struct berth_pool *pool, struct berth_counts *counts);

/*
 * Free addresses in each block of 4,096 ordinals of the window, the last perhaps shorter; `capacity` as in
 * berth_set_ranges.
 */
int berth_pool_free_per_block(const struct berth_pool *pool, uint16_t *blocks, size_t capacity);

/* New sets: what is used, masked or not; the ranges; the masks as far as they lie in the ranges. */
int berth_pool_used(const struct berth_pool *pool, struct berth_set *set);
int berth_pool_ranges(const struct berth_pool *pool, struct berth_set *set);
int berth_pool_masks(const struct berth_pool *pool, struct berth_set *set);

/*
 * Saves the used addresses, as bytes for berth_pool_load of a pool with the same ranges; masks and the order of
 * release are not in it. Gives the length; writes nothing when `capacity` is less.
 */
int berth_pool_save(const struct berth_pool *pool, void *snapshot, size_t capacity);

/* Replaces what is used; on any answer (enum berth_loaded) but BERTH_LOADED the pool is as before. */
int berth_pool_load(const struct berth_pool *pool, const void *snapshot, size_t length);

/* From now on remembers the order in which addresses of the window become free, for BERTH_LEAST_RECENTLY_FREED. */
int berth_pool_track_freed(const struct berth_pool *pool);

/* The same pool in a copy of its core. */
struct berth_pool berth_pool_in(const struct berth_pool *pool, struct berth_core *copy);

/* Gives the memory back. */
int berth_pool_drop(const struct berth_pool *pool);

/*
 * --- Pools: addresses ----------------------------------------------------------------------------------------------
 */

/* Answers of berth_pool_claim and berth_pool_claim_run. */
enum berth_claimed { BERTH_TAKEN, BERTH_CLAIMED, BERTH_CLAIM_OUTSIDE };

/* Answers of berth_pool_release. */
enum berth_released { BERTH_FREE, BERTH_RELEASED, BERTH_RELEASE_OUTSIDE };

/* Marks the next free address used: 1 with the address, 0 when none is free. `seed` is for BERTH_HASHED. */
int berth_pool_allocate(const struct berth_pool *pool, enum berth_policy policy, uint32_t seed, struct berth_ip *ip);

/* The same `count` times, to packed addresses: how many, fewer when no more are free. */
int berth_pool_allocate_many(const struct berth_pool *pool, enum berth_policy policy, uint32_t seed, void *packed,
                             size_t count);

/*
 * The first free address at or after ordinal `seed` modulo the window, wrapping once: 1, or 0 when none is. Marks
 * nothing.
 */
int berth_pool_find_free(const struct berth_pool *pool, uint32_t seed, struct berth_ip *ip);

/*
 * The same in hashed order over all addresses, those beyond the window too. `seed` is a number of 128 bits, big-endian.
 */
int berth_pool_find_free_wide(const struct berth_pool *pool, const uint8_t seed[16], struct berth_ip *ip);

/*
 * `count` free addresses of the window that follow one another, the first a multiple of 2^align_bits, from ordinal
 * `seed` modulo the window on, wrapping once: 1, or 0 when there are none. Marks nothing.
 */
int berth_pool_find_free_run(const struct berth_pool *pool, uint32_t count, int align_bits, uint32_t seed,
                             struct berth_range *run);

/* Whether the address is in the ranges and not masked: 1 or 0. */
int berth_pool_contains(const struct berth_pool *pool, const struct berth_ip *ip);

/* Whether the address is used: 1 or 0. */
int berth_pool_test(const struct berth_pool *pool, const struct berth_ip *ip);

/* Marks the address used, a masked one too: enum berth_claimed. One of the other family is outside. */
int berth_pool_claim(const struct berth_pool *pool, const struct berth_ip *ip);

/* Marks the address not used: enum berth_released. */
int berth_pool_release(const struct berth_pool *pool, const struct berth_ip *ip);

/* Write 1 or 0 for each packed address to `found`; how many are 1. */
int berth_pool_contains_many(const struct berth_pool *pool, const void *packed, size_t count, uint8_t *found);
int berth_pool_test_many(const struct berth_pool *pool, const void *packed, size_t count, uint8_t *found);

/* Marks packed addresses used, as far as they are not outside: how many newly. A status ends it half-way. */
int berth_pool_claim_many(const struct berth_pool *pool, const void *packed, size_t count);

/* Marks packed addresses not used: how many were used. */
int berth_pool_release_many(const struct berth_pool *pool, const void *packed, size_t count);

/* Marks a range of the window used, all of it or nothing: enum berth_claimed. */
int berth_pool_claim_run(const struct berth_pool *pool, const struct berth_range *run);

/*
 * Marks a range not used: how many of its addresses were used. BERTH_STATUS_OUTSIDE unless all of it is in the window.
 */
int berth_pool_release_run(const struct berth_pool *pool, const struct berth_range *run);

/*
 * --- Prefixes ------------------------------------------------------------------------------------------------------
 */

/* The lowest and the highest address. BERTH_STATUS_BAD_ARGUMENT above length 32 or 128, as in all that follow. */
int berth_prefix_first(struct berth_core *core, const struct berth_prefix *prefix, struct berth_ip *first);
int berth_prefix_last(struct berth_core *core, const struct berth_prefix *prefix, struct berth_ip *last);

/* The network mask: 255.255.255.0 for 24. */
int berth_prefix_mask(struct berth_core *core, sa_family_t family, int length, struct berth_ip *mask);

/* The prefix of the same length that follows: 1, or 0 after the last one. */
int berth_prefix_next(struct berth_core *core, const struct berth_prefix *prefix, struct berth_prefix *next);

/*
 * Number `index`, from 0, of the prefixes of `length` into which the prefix can be split: 1, or 0 after the last one.
 */
int berth_prefix_part(struct berth_core *core, const struct berth_prefix *prefix, int length, uint32_t index,
                      struct berth_prefix *part);

/* The longest prefix that holds both addresses. BERTH_STATUS_BAD_FAMILY when their families differ. */
int berth_prefix_common(struct berth_core *core, const struct berth_ip *a, const struct berth_ip *b,
                        struct berth_prefix *common);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
