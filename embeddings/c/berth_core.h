/* Pools and sets of IP addresses: the used ones, the next free one. The library is the WebAssembly core of Berth as
 * C.
 *
 * A result below 0 is a status (enum berth_status, berth_strerror): misuse, a ceiling, or a refused snapshot, after
 * which nothing has changed; or BERTH_STATUS_OUTSIDE. "None free" is 0. A core with its pools and sets is one
 * thread's at a time; they meet only what lives in the same core. berth_raw.h has all other functions. */
#ifndef BERTH_CORE_H
#define BERTH_CORE_H

#include "berth_raw.h"

BERTH_BEGIN_C

/* A pool or a set. `handle` is for the functions of berth_raw.h; berth_raw_drop gives the memory back. */
struct berth_object {
    struct berth_core *core;
    int32_t handle;
    sa_family_t family;
};

/* The result of a function of berth_raw.h for the object, of its family. */
int berth_adopt(const struct berth_object *object, int32_t handle, struct berth_object *made);

/* A set of ranges of one family, which may overlap and stand in any order. */
int berth_set_create(struct berth_core *core, const struct berth_range *ranges, size_t count, struct berth_object *set);

/* New sets: the addresses of either, of both, of `a` that are not in `b`. */
#define berth_set_union(a, b, set) berth_adopt(a, berth_raw_set_union((a)->core, (a)->handle, (b)->handle), set)
#define berth_set_intersect(a, b, set) berth_adopt(a, berth_raw_set_intersect((a)->core, (a)->handle, (b)->handle), set)
#define berth_set_subtract(a, b, set) berth_adopt(a, berth_raw_set_subtract((a)->core, (a)->handle, (b)->handle), set)

/* 1 or 0: the sets share an address; every address of `b` is in `a`. */
#define berth_set_overlaps(a, b) berth_raw_set_overlaps((a)->core, (a)->handle, (b)->handle)
#define berth_set_includes(a, b) berth_raw_set_includes((a)->core, (a)->handle, (b)->handle)

/* The number of addresses; the fewest ranges, or prefixes, ascending: how many, of which `capacity` are written. */
int berth_set_size(const struct berth_object *set, berth_size *size);
int berth_set_ranges(const struct berth_object *set, struct berth_range *ranges, size_t capacity);
int berth_set_prefixes(const struct berth_object *set, struct berth_prefix *prefixes, size_t capacity);

/* A pool of a set, with nothing used. Those of another set, masked (reserved, gateways), are never found free, but
 * may be claimed. An edit gives a pool other sets: used addresses stay used if they are in the new ranges. */
#define berth_pool_create(ranges, masks, pool) \
    berth_adopt(ranges, berth_raw_pool_create((ranges)->core, (ranges)->handle, (masks)->handle), pool)
#define berth_pool_edit(pool, ranges, masks) \
    berth_raw_pool_edit((pool)->core, (pool)->handle, (ranges)->handle, (masks)->handle)

/* The answer of a call about an address: 1 or 0. One of the other family is BERTH_STATUS_OUTSIDE. */
int berth_ask(const struct berth_object *object, const struct berth_ip *ip,
              int32_t (*call)(struct berth_core *core, int32_t handle));

/* It is in the set; may be allocated; is used; is newly marked used, or not used. */
#define berth_set_contains(set, ip) berth_ask(set, ip, berth_raw_set_contains)
#define berth_pool_contains(pool, ip) berth_ask(pool, ip, berth_raw_pool_contains)
#define berth_pool_test(pool, ip) berth_ask(pool, ip, berth_raw_pool_test)
#define berth_pool_claim(pool, ip) berth_ask(pool, ip, berth_raw_pool_claim)
#define berth_pool_release(pool, ip) berth_ask(pool, ip, berth_raw_pool_release)

/* The address of an ordinal that a call found: 1, or 0 when it found none. */
int berth_pool_at(const struct berth_object *pool, int32_t ordinal, struct berth_ip *ip);

/* Marks the next free address of the window used; the seed is for BERTH_HASHED. The first free one from an ordinal on. */
#define berth_pool_allocate(pool, policy, seed, ip) \
    berth_pool_at(pool, berth_raw_pool_allocate((pool)->core, (pool)->handle, policy, seed), ip)
#define berth_pool_find_free(pool, seed, ip) berth_pool_at(pool, berth_raw_pool_find((pool)->core, (pool)->handle, seed), ip)

/* The first free address in hashed order, those beyond the window too, from the low bits of a big-endian seed on. */
int berth_pool_find_free_wide(const struct berth_object *pool, const uint8_t seed[16], struct berth_ip *ip);

/* From now on remembers the order of release, for BERTH_LEAST_RECENTLY_FREED. */
#define berth_pool_track_freed(pool) berth_raw_pool_track_freed((pool)->core, (pool)->handle)

struct berth_counts {
    berth_size total, free;       /* in the ranges and not masked; of those, not used */
    uint32_t used, used_masked;    /* masked or not, in the window or beyond; of those, masked */
    uint32_t window, beyond;       /* in the window, at most BERTH_MAX_WINDOW; used beyond it */
};
int berth_pool_counts(const struct berth_object *pool, struct berth_counts *counts);

/* The used addresses, masked or not: a new set; as bytes: their number, written up to `capacity`; from such bytes. */
#define berth_pool_used(pool, set) berth_adopt(pool, berth_raw_pool_used((pool)->core, (pool)->handle), set)
int berth_pool_save(const struct berth_object *pool, void *snapshot, size_t capacity);
int berth_pool_load(const struct berth_object *pool, const void *snapshot, size_t length);

/* An address of a prefix: its lowest, its highest, its mask, the first one behind it. 1, or 0 when there is none. */
int berth_prefix_ask(struct berth_core *core, const struct berth_prefix *prefix, struct berth_ip *ip,
                     int32_t (*call)(struct berth_core *core, int32_t family, int32_t length));
#define berth_prefix_first(core, prefix, ip) berth_prefix_ask(core, prefix, ip, berth_raw_prefix_first)
#define berth_prefix_last(core, prefix, ip) berth_prefix_ask(core, prefix, ip, berth_raw_prefix_last)
#define berth_prefix_mask(core, prefix, ip) berth_prefix_ask(core, prefix, ip, berth_raw_prefix_mask)
#define berth_prefix_next(core, prefix, ip) berth_prefix_ask(core, prefix, ip, berth_raw_prefix_next)

/* The first address of prefix number `index` of a length in it: 1, or 0 after the last one. */
int berth_prefix_part(struct berth_core *core, const struct berth_prefix *prefix, int length, uint32_t index,
                      struct berth_ip *ip);

/* The length of the longest prefix that holds both ends. */
int berth_prefix_common(struct berth_core *core, const struct berth_range *ends);

BERTH_END_C

#endif
