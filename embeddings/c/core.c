#include "berth_core.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static size_t width_of(sa_family_t family)
{
    return family == AF_INET ? 4 : 16;
}

static int32_t number_of(sa_family_t family)
{
    return family == AF_INET ? 4 : 6;
}

static struct berth_ip read_ip(const uint8_t *bytes, sa_family_t family)
{
    struct berth_ip ip = {.family = family};
    memcpy(ip.bytes, bytes, width_of(family));
    return ip;
}

int berth_ip_parse(const char *text, struct berth_ip *ip)
{
    struct berth_ip found = {.family = strchr(text, ':') == NULL ? AF_INET : AF_INET6};
    if (inet_pton(found.family, text, found.bytes) != 1)
        return BERTH_STATUS_BAD_ARGUMENT;
    *ip = found;
    return 0;
}

const char *berth_ip_format(const struct berth_ip *ip, char text[INET6_ADDRSTRLEN])
{
    return inet_ntop(ip->family, ip->bytes, text, INET6_ADDRSTRLEN);
}

/* Parses an address before the separator: the text behind that, or NULL. */
static const char *parse_before(const char *text, char separator, struct berth_ip *ip)
{
    char head[INET6_ADDRSTRLEN] = "";
    const char *end = strchr(text, separator);
    if (end == NULL || (size_t)(end - text) >= sizeof head)
        return NULL;
    memcpy(head, text, (size_t)(end - text));
    return berth_ip_parse(head, ip) < 0 ? NULL : end + 1;
}

int berth_prefix_parse(const char *text, struct berth_prefix *prefix)
{
    struct berth_ip ip;
    char *end;
    const char *digits = parse_before(text, '/', &ip);
    if (digits == NULL || *digits < '0' || *digits > '9')
        return BERTH_STATUS_BAD_ARGUMENT;
    unsigned long length = strtoul(digits, &end, 10);
    if (*end != '\0' || length > 8 * width_of(ip.family))
        return BERTH_STATUS_BAD_ARGUMENT;
    *prefix = (struct berth_prefix){ip, (uint8_t)length};
    return 0;
}

int berth_range_parse(const char *text, struct berth_range *range)
{
    struct berth_prefix prefix;
    const char *last = parse_before(text, '-', &prefix.ip);
    if (last != NULL) {
        range->first = prefix.ip;
        return berth_ip_parse(last, &range->last);
    }
    if (berth_prefix_parse(text, &prefix) < 0)
        return BERTH_STATUS_BAD_ARGUMENT;
    range->first = range->last = prefix.ip;
    for (size_t bit = prefix.length; bit < 8 * width_of(prefix.ip.family); bit++) {
        range->first.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        range->last.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    }
    return 0;
}

/* Big-endian. */
static uint64_t read_big(const uint8_t *bytes, size_t length)
{
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++)
        number = number << 8 | bytes[i];
    return number;
}

static struct berth_size read_size(const uint8_t *bytes)
{
    return (struct berth_size){bytes[0], read_big(bytes + 1, 8), read_big(bytes + 9, 8)};
}

static struct berth_size subtract(struct berth_size a, struct berth_size b)
{
    uint64_t borrow = a.low < b.low;
    uint64_t more = a.high < b.high || (a.high == b.high && borrow);
    return (struct berth_size){a.over - b.over - more, a.high - b.high - borrow, a.low - b.low};
}

int berth_set_of(const struct berth_object *object, int32_t handle, struct berth_object *set)
{
    if (handle >= 0)
        *set = (struct berth_object){object->core, handle, object->family};
    return handle < 0 ? handle : 0;
}

int berth_set_create(struct berth_core *core, const struct berth_range *ranges, size_t count, struct berth_object *set)
{
    struct berth_object created = {core, 0, count > 0 ? ranges[0].first.family : AF_INET};
    size_t width = width_of(created.family);
    int32_t at = berth_raw_exchange(core, (int32_t)(count > BERTH_MAX_EXCHANGE / 32 ? BERTH_MAX_EXCHANGE + 1 : 2 * width * count));
    if (at < 0)
        return at;
    uint8_t *item = berth_core_memory(core, (uint32_t)at);
    for (size_t i = 0; i < count; i++, item += 2 * width) {
        if (ranges[i].first.family != created.family || ranges[i].last.family != created.family)
            return BERTH_STATUS_BAD_FAMILY;
        memcpy(item, ranges[i].first.bytes, width);
        memcpy(item + width, ranges[i].last.bytes, width);
    }
    return berth_set_of(&created, berth_raw_set_create(core, number_of(created.family), (int32_t)count), set);
}

int berth_set_size(const struct berth_object *set, struct berth_size *size)
{
    int32_t status = berth_raw_set_size(set->core, set->handle);
    if (status >= 0)
        *size = read_size(berth_raw_output(set->core));
    return status < 0 ? status : 0;
}

int berth_set_ranges(const struct berth_object *set, struct berth_range *ranges, size_t capacity)
{
    int32_t count = berth_raw_set_ranges(set->core, set->handle);
    size_t width = width_of(set->family);
    const uint8_t *item = berth_raw_output(set->core);
    for (int32_t i = 0; i < count && (size_t)i < capacity; i++, item += 2 * width)
        ranges[i] = (struct berth_range){read_ip(item, set->family), read_ip(item + width, set->family)};
    return count;
}

int berth_set_prefixes(const struct berth_object *set, struct berth_prefix *prefixes, size_t capacity)
{
    int32_t count = berth_raw_set_prefixes(set->core, set->handle);
    size_t width = width_of(set->family);
    const uint8_t *item = berth_raw_output(set->core);
    for (int32_t i = 0; i < count && (size_t)i < capacity; i++, item += width + 1)
        prefixes[i] = (struct berth_prefix){read_ip(item, set->family), item[width]};
    return count;
}

/* Gives a pool its shape; handle 0 makes a new one. Without masks it has those of an empty set. */
static int32_t shape(int32_t pool, const struct berth_object *ranges, const struct berth_object *masks)
{
    struct berth_core *core = ranges->core;
    int32_t none = masks == NULL ? berth_raw_set_subtract(core, ranges->handle, ranges->handle) : 0;
    int32_t mask = masks == NULL ? none : masks->handle;
    int32_t result = pool == 0 ? berth_raw_pool_create(core, ranges->handle, mask)
                               : berth_raw_pool_edit(core, pool, ranges->handle, mask);
    if (none > 0)
        berth_raw_drop(core, none);
    return result;
}

int berth_pool_create(const struct berth_object *ranges, const struct berth_object *masks, struct berth_object *pool)
{
    return berth_set_of(ranges, shape(0, ranges, masks), pool);
}

int berth_pool_edit(const struct berth_object *pool, const struct berth_object *ranges, const struct berth_object *masks)
{
    return shape(pool->handle, ranges, masks);
}

int berth_ask(const struct berth_object *object, const struct berth_ip *ip, berth_call *call)
{
    if (ip->family != object->family)
        return BERTH_STATUS_OUTSIDE;
    int32_t status = berth_raw_write(object->core, ip->bytes, 16);
    return status < 0 ? status : call(object->core, object->handle);
}

/* 1 with the address that a call has written, 0 when there is none; or its status. */
static int take(struct berth_core *core, sa_family_t family, int32_t status, struct berth_ip *ip)
{
    if (status < 0)
        return status == BERTH_STATUS_NONE || status == BERTH_STATUS_OUTSIDE ? 0 : status;
    *ip = read_ip(berth_raw_output(core), family);
    return 1;
}

int berth_pool_at(const struct berth_object *pool, int32_t ordinal, struct berth_ip *ip)
{
    if (ordinal >= 0)
        ordinal = berth_raw_pool_address(pool->core, pool->handle, (uint32_t)ordinal);
    return take(pool->core, pool->family, ordinal, ip);
}

int berth_pool_find_free_wide(const struct berth_object *pool, const uint8_t seed[16], struct berth_ip *ip)
{
    int32_t status = berth_raw_write(pool->core, seed, 16);
    status = status < 0 ? status : berth_raw_pool_find_wide(pool->core, pool->handle);
    return take(pool->core, pool->family, status, ip);
}

/* The core writes it little-endian. */
static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

int berth_pool_counts(const struct berth_object *pool, struct berth_counts *counts)
{
    int32_t status = berth_raw_pool_counts(pool->core, pool->handle);
    if (status < 0)
        return status;
    const uint8_t *at = berth_raw_output(pool->core);
    counts->used = read_word(at + BERTH_COUNTS_AT_USED);
    counts->used_masked = read_word(at + BERTH_COUNTS_AT_USED_MASKED);
    counts->window = read_word(at + BERTH_COUNTS_AT_WINDOW);
    counts->beyond = read_word(at + BERTH_COUNTS_AT_BEYOND);
    counts->total = subtract(read_size(at + BERTH_COUNTS_AT_SIZE), read_size(at + BERTH_COUNTS_AT_MASKED));
    counts->free = subtract(counts->total, (struct berth_size){.low = counts->used - counts->used_masked});
    return 0;
}

int berth_pool_save(const struct berth_object *pool, void *snapshot, size_t capacity)
{
    int32_t length = berth_raw_pool_save(pool->core, pool->handle);
    if (length > 0 && (size_t)length <= capacity)
        memcpy(snapshot, berth_raw_output(pool->core), (size_t)length);
    return length;
}

int berth_pool_load(const struct berth_object *pool, const void *snapshot, size_t length)
{
    int32_t status = berth_raw_write(pool->core, snapshot, length);
    return status < 0 ? status : berth_raw_pool_load(pool->core, pool->handle, (int32_t)length);
}

int berth_prefix_ask(struct berth_core *core, const struct berth_prefix *prefix, berth_pair_call *call, struct berth_ip *ip)
{
    int32_t status = berth_raw_write(core, prefix->ip.bytes, 16);
    status = status < 0 ? status : call(core, number_of(prefix->ip.family), prefix->length);
    return take(core, prefix->ip.family, status, ip);
}

int berth_prefix_part(struct berth_core *core, const struct berth_prefix *prefix, int length, uint32_t index,
                      struct berth_ip *ip)
{
    int32_t status = berth_raw_write(core, prefix->ip.bytes, 16), family = number_of(prefix->ip.family);
    status = status < 0 ? status : berth_raw_prefix_part(core, family, prefix->length, length, index);
    return take(core, prefix->ip.family, status, ip);
}

int berth_prefix_common(struct berth_core *core, const struct berth_range *ends)
{
    uint8_t input[32];
    if (ends->first.family != ends->last.family)
        return BERTH_STATUS_BAD_FAMILY;
    memcpy(input, ends->first.bytes, 16);
    memcpy(input + width_of(ends->first.family), ends->last.bytes, 16);
    int32_t status = berth_raw_write(core, input, sizeof input);
    return status < 0 ? status : berth_raw_prefix_common(core, number_of(ends->first.family));
}
