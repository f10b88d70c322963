/* The tests' assertions: they hold in every build, and name the line. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth_core.h"

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static inline struct berth_ip ip(const char *text)
{
    struct berth_ip ip;
    CHECK(berth_ip_parse(text, &ip) == 0);
    return ip;
}

static inline struct berth_range range(const char *text)
{
    struct berth_range range;
    CHECK(berth_range_parse(text, &range) == 0);
    return range;
}

static inline struct berth_prefix prefix(const char *text)
{
    struct berth_prefix prefix;
    CHECK(berth_prefix_parse(text, &prefix) == 0);
    return prefix;
}

static inline int is_ip(const struct berth_ip *found, const char *text)
{
    char buffer[BERTH_IP_TEXT];
    return strcmp(berth_ip_format(found, buffer), text) == 0;
}

static inline int is_range(const struct berth_range *found, const char *text)
{
    char buffer[BERTH_RANGE_TEXT];
    return strcmp(berth_range_format(found, buffer), text) == 0;
}

static inline int is_prefix(const struct berth_prefix *found, const char *text)
{
    char buffer[BERTH_PREFIX_TEXT];
    return strcmp(berth_prefix_format(found, buffer), text) == 0;
}

static inline int is_size(const struct berth_size *found, const char *text)
{
    char buffer[BERTH_SIZE_TEXT];
    return strcmp(berth_size_format(found, buffer), text) == 0;
}

static inline struct berth_core *open_core(void)
{
    struct berth_core *core = berth_core_open();
    CHECK(core != NULL);
    return core;
}

/* A set of one range. */
static inline struct berth_set set_of(struct berth_core *core, const char *text)
{
    struct berth_range only = range(text);
    struct berth_set set;
    CHECK(berth_set_create(core, only.first.family, &only, 1, &set) == 0);
    return set;
}

/* A pool of one range, with a range of masks unless that is NULL. */
static inline struct berth_pool pool_of(struct berth_core *core, const char *text, const char *masked)
{
    struct berth_range ranges = range(text);
    struct berth_range masks = range(masked == NULL ? text : masked);
    struct berth_shape shape = {&ranges, 1, &masks, masked != NULL};
    struct berth_pool pool;
    CHECK(berth_pool_create(core, &shape, &pool) == 0);
    return pool;
}

#endif
