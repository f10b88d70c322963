/*
 * Pools and sets of IP addresses: which are used, which is free next. The library is the WebAssembly core of Berth as C.
 *
 * Functions give 0 or more, or a negative status (enum berth_status, berth_strerror): misuse, a ceiling, or a refused
 * snapshot, after which nothing has changed. "None free" is 0, and "outside" BERTH_STATUS_OUTSIDE. A core with its pools
 * and sets is one thread's at a time; they meet only what lives in the same core. berth_raw.h has what is left out here.
 */
#ifndef BERTH_CORE_H
#define BERTH_CORE_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "berth_raw.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* An address of AF_INET or AF_INET6, in the first 4 bytes or all of them. An IPv4-mapped address is an IPv6 one. */
struct berth_ip {
    sa_family_t family;
    uint8_t bytes[16];
};

/* All addresses from `first` to `last`, both included. */
struct berth_range {
    struct berth_ip first, last;
};

/* All addresses that share the first `length` bits with `ip`. */
struct berth_prefix {
    struct berth_ip ip;
    uint8_t length;
};

/* A number of addresses, 0 to 2^128: over * 2^128 + high * 2^64 + low. */
struct berth_size {
    uint64_t over, high, low;
};

/* "10.0.0.1", "10.0.0.0/24", or a prefix or "10.0.0.0-10.0.0.9". BERTH_STATUS_BAD_ARGUMENT for other text. */
int berth_ip_parse(const char *text, struct berth_ip *ip);
int berth_prefix_parse(const char *text, struct berth_prefix *prefix);
int berth_range_parse(const char *text, struct berth_range *range);

/* Writes the address as text, and gives the text. */
const char *berth_ip_format(const struct berth_ip *ip, char text[INET6_ADDRSTRLEN]);

/* A pool or a set. `handle` is what the functions of berth_raw.h call it; berth_raw_drop gives the memory back. */
struct berth_object {
    struct berth_core *core;
    int32_t handle;
    sa_family_t family;
};

/* The functions of berth_raw.h with one, or with two, parameters: the macros below name them. */
typedef int32_t berth_call(struct berth_core *core, int32_t handle);
typedef int32_t berth_pair_call(struct berth_core *core, int32_t a, int32_t b);

/* A set of ranges of one family, which may overlap and stand in any order. */
int berth_set_create(struct berth_core *core, const struct berth_range *ranges, size_t count, struct berth_object *set);

/* New sets: the addresses of either, of both, of `a` that are not in `b`. And what is used in a pool, masked or not. */
int berth_set_of(const struct berth_object *object, int32_t handle, struct berth_object *set);
#define berth_set_union(a, b, set) berth_set_of(a, berth_raw_set_union((a)->core, (a)->handle, (b)->handle), set)
#define berth_set_intersect(a, b, set) berth_set_of(a, berth_raw_set_intersect((a)->core, (a)->handle, (b)->handle), set)
#define berth_set_subtract(a, b, set) berth_set_of(a, berth_raw_set_subtract((a)->core, (a)->handle, (b)->handle), set)
#define berth_pool_used(pool, set) berth_set_of(pool, berth_raw_pool_used((pool)->core, (pool)->handle), set)

/* 1 or 0: the sets share an address; every address of `b` is in `a`. */
#define berth_set_overlaps(a, b) berth_raw_set_overlaps((a)->core, (a)->handle, (b)->handle)
#define berth_set_includes(a, b) berth_raw_set_includes((a)->core, (a)->handle, (b)->handle)

/* The number of addresses. */
int berth_set_size(const struct berth_object *set, struct berth_size *size);

/* The fewest ranges, or prefixes, ascending: how many there are. Writes as many as `capacity` allows. */
int berth_set_ranges(const struct berth_object *set, struct berth_range *ranges, size_t capacity);
int berth_set_prefixes(const struct berth_object *set, struct berth_prefix *prefixes, size_t capacity);

/*
 * A pool with nothing used, over a set. Masked addresses (reserved, gateways) are never found free, but may be claimed;
 * `masks` may be NULL. An edit gives it other ones: what is used stays used wherever its address is in the new ranges.
 */
int berth_pool_create(const struct berth_object *ranges, const struct berth_object *masks, struct berth_object *pool);
int berth_pool_edit(const struct berth_object *pool, const struct berth_object *ranges, const struct berth_object *masks);

/* What a call says of an address. One of the other family is BERTH_STATUS_OUTSIDE. */
int berth_ask(const struct berth_object *object, const struct berth_ip *ip, berth_call *call);

/* 1 or 0: the address is in the set; may be allocated; is used. 1 newly marked used, or not used; 0 it was so. */
#define berth_set_contains(set, ip) berth_ask(set, ip, berth_raw_set_contains)
#define berth_pool_contains(pool, ip) berth_ask(pool, ip, berth_raw_pool_contains)
#define berth_pool_test(pool, ip) berth_ask(pool, ip, berth_raw_pool_test)
#define berth_pool_claim(pool, ip) berth_ask(pool, ip, berth_raw_pool_claim)
#define berth_pool_release(pool, ip) berth_ask(pool, ip, berth_raw_pool_release)

/* The address that a call found by its ordinal: 1, or 0 when there is none. */
int berth_pool_at(const struct berth_object *pool, int32_t ordinal, struct berth_ip *ip);

/* Marks the next free address of the window used; the seed is for BERTH_HASHED. The first one from an ordinal on. */
#define berth_pool_allocate(pool, policy, seed, ip) \
    berth_pool_at(pool, berth_raw_pool_allocate((pool)->core, (pool)->handle, policy, seed), ip)
#define berth_pool_find_free(pool, seed, ip) berth_pool_at(pool, berth_raw_pool_find((pool)->core, (pool)->handle, seed), ip)

/* The first free address in hashed order, those beyond the window too, from the low bits of a big-endian seed on. */
int berth_pool_find_free_wide(const struct berth_object *pool, const uint8_t seed[16], struct berth_ip *ip);

/* From now on remembers the order of release, for BERTH_LEAST_RECENTLY_FREED. */
#define berth_pool_track_freed(pool) berth_raw_pool_track_freed((pool)->core, (pool)->handle)

struct berth_counts {
    struct berth_size total, free; /* in the ranges and not masked; of those, not used */
    uint32_t used, used_masked;    /* masked or not, in the window or beyond; of those, masked */
    uint32_t window, beyond;       /* in the window, at most BERTH_MAX_WINDOW; used beyond it */
};
int berth_pool_counts(const struct berth_object *pool, struct berth_counts *counts);

/* What is used, as bytes: their number; writes nothing when `capacity` is less. Replaces what is used. */
int berth_pool_save(const struct berth_object *pool, void *snapshot, size_t capacity);
int berth_pool_load(const struct berth_object *pool, const void *snapshot, size_t length);

/* What a call makes of a prefix: 1, or 0 when there is none. Its lowest address, its highest, its mask, the next one's. */
int berth_prefix_ask(struct berth_core *core, const struct berth_prefix *prefix, berth_pair_call *call, struct berth_ip *ip);
#define berth_prefix_first(core, prefix, ip) berth_prefix_ask(core, prefix, berth_raw_prefix_first, ip)
#define berth_prefix_last(core, prefix, ip) berth_prefix_ask(core, prefix, berth_raw_prefix_last, ip)
#define berth_prefix_mask(core, prefix, ip) berth_prefix_ask(core, prefix, berth_raw_prefix_mask, ip)
#define berth_prefix_next(core, prefix, ip) berth_prefix_ask(core, prefix, berth_raw_prefix_next, ip)

/* The first address of prefix number `index` of a length in it: 1, or 0 after the last one. */
int berth_prefix_part(struct berth_core *core, const struct berth_prefix *prefix, int length, uint32_t index,
                      struct berth_ip *ip);

/* The length of the longest prefix that holds both ends of the range. */
int berth_prefix_common(struct berth_core *core, const struct berth_range *ends);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
