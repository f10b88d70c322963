#include "berth_core.h"

#include <string.h>

int berth_adopt(const struct berth_object *object, int32_t handle, struct berth_object *made)
{
    if (handle >= 0)
        *made = (struct berth_object){object->core, handle, object->family};
    return handle < 0 ? handle : 0;
}

int berth_set_create(struct berth_core *core, const struct berth_range *ranges, size_t count, struct berth_object *set)
{
    struct berth_object created = {core, 0, count > 0 ? ranges[0].first.family : AF_INET};
    size_t width = berth_width(created.family);
    int32_t at = berth_raw_exchange(core, count > BERTH_MAX_RANGES ? -1 : (int32_t)(2 * width * count));
    if (at < 0)
        return at;
    uint8_t *item = berth_core_memory(core, (uint32_t)at);
    for (size_t i = 0; i < count; i++, item += 2 * width) {
        if (ranges[i].first.family != created.family || ranges[i].last.family != created.family)
            return BERTH_STATUS_BAD_FAMILY;
        memcpy(item, ranges[i].first.bytes, width);
        memcpy(item + width, ranges[i].last.bytes, width);
    }
    return berth_adopt(&created, berth_raw_set_create(core, berth_family(created.family), (int32_t)count), set);
}

int berth_set_size(const struct berth_object *set, berth_size *size)
{
    int32_t status = berth_raw_set_size(set->core, set->handle);
    if (status >= 0)
        *size = berth_read_size(berth_raw_output(set->core));
    return status < 0 ? status : 0;
}

int berth_set_ranges(const struct berth_object *set, struct berth_range *ranges, size_t capacity)
{
    int32_t count = berth_raw_set_ranges(set->core, set->handle);
    size_t width = berth_width(set->family);
    const uint8_t *item = berth_raw_output(set->core);
    for (int32_t i = 0; i < count && (size_t)i < capacity; i++, item += 2 * width)
        ranges[i] = (struct berth_range){berth_read_ip(item, set->family), berth_read_ip(item + width, set->family)};
    return count;
}

int berth_set_prefixes(const struct berth_object *set, struct berth_prefix *prefixes, size_t capacity)
{
    int32_t count = berth_raw_set_prefixes(set->core, set->handle);
    size_t width = berth_width(set->family);
    const uint8_t *item = berth_raw_output(set->core);
    for (int32_t i = 0; i < count && (size_t)i < capacity; i++, item += width + 1)
        prefixes[i] = (struct berth_prefix){berth_read_ip(item, set->family), item[width]};
    return count;
}

int berth_ask(const struct berth_object *object, const struct berth_ip *ip,
              int32_t (*call)(struct berth_core *core, int32_t handle))
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
    *ip = berth_read_ip(berth_raw_output(core), family);
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

int berth_pool_counts(const struct berth_object *pool, struct berth_counts *counts)
{
    int32_t status = berth_raw_pool_counts(pool->core, pool->handle);
    if (status < 0)
        return status;
    const uint8_t *at = berth_raw_output(pool->core);
    counts->used = berth_read_word(at + BERTH_COUNTS_AT_USED);
    counts->used_masked = berth_read_word(at + BERTH_COUNTS_AT_USED_MASKED);
    counts->window = berth_read_word(at + BERTH_COUNTS_AT_WINDOW);
    counts->beyond = berth_read_word(at + BERTH_COUNTS_AT_BEYOND);
    counts->total = berth_read_size(at + BERTH_COUNTS_AT_SIZE) - berth_read_size(at + BERTH_COUNTS_AT_MASKED);
    counts->free = counts->total - (counts->used - counts->used_masked);
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

int berth_prefix_ask(struct berth_core *core, const struct berth_prefix *prefix, struct berth_ip *ip,
                     int32_t (*call)(struct berth_core *core, int32_t family, int32_t length))
{
    int32_t status = berth_raw_write(core, prefix->ip.bytes, 16);
    status = status < 0 ? status : call(core, berth_family(prefix->ip.family), prefix->length);
    return take(core, prefix->ip.family, status, ip);
}

int berth_prefix_part(struct berth_core *core, const struct berth_prefix *prefix, int length, uint32_t index,
                      struct berth_ip *ip)
{
    int32_t status = berth_raw_write(core, prefix->ip.bytes, 16), family = berth_family(prefix->ip.family);
    status = status < 0 ? status : berth_raw_prefix_part(core, family, prefix->length, length, index);
    return take(core, prefix->ip.family, status, ip);
}

int berth_prefix_common(struct berth_core *core, const struct berth_range *ends)
{
    uint8_t input[32];
    if (ends->first.family != ends->last.family)
        return BERTH_STATUS_BAD_FAMILY;
    memcpy(input, ends->first.bytes, 16);
    memcpy(input + berth_width(ends->first.family), ends->last.bytes, 16);
    int32_t status = berth_raw_write(core, input, sizeof input);
    return status < 0 ? status : berth_raw_prefix_common(core, berth_family(ends->first.family));
}
