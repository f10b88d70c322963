#include "internal.h"

int berth_adopt_set(struct berth_core *core, sa_family_t family, int32_t handle, struct berth_set *set)
{
    if (handle < 0)
        return handle;
    *set = (struct berth_set){core, handle, family};
    return BERTH_STATUS_OK;
}

struct berth_size berth_read_size(const uint8_t *bytes)
{
    struct berth_size size = {.over = bytes[0]};
    for (int i = 1; i <= 8; i++)
        size.high = size.high << 8 | bytes[i];
    for (int i = 9; i <= 16; i++)
        size.low = size.low << 8 | bytes[i];
    return size;
}

int berth_set_create(struct berth_core *core, sa_family_t family, const struct berth_range *ranges, size_t count,
                     struct berth_set *set)
{
    size_t width = width_of(family);
    if (width == 0)
        return BERTH_STATUS_BAD_FAMILY;
    uint8_t *buffer;
    int status = reserve(core, count, 2 * width, &buffer);
    if (status < 0)
        return status;
    for (size_t i = 0; i < count; i++, buffer += 2 * width) {
        if (ranges[i].first.family != family || ranges[i].last.family != family)
            return BERTH_STATUS_BAD_FAMILY;
        memcpy(buffer, ranges[i].first.bytes, width);
        memcpy(buffer + width, ranges[i].last.bytes, width);
    }
    return berth_adopt_set(core, family, berth_raw_set_create(core, number_of(family), (int32_t)count), set);
}

int berth_set_create_prefixes(struct berth_core *core, sa_family_t family, const struct berth_prefix *prefixes,
                              size_t count, struct berth_set *set)
{
    size_t width = width_of(family);
    if (width == 0)
        return BERTH_STATUS_BAD_FAMILY;
    uint8_t *buffer;
    int status = reserve(core, count, width + 1, &buffer);
    if (status < 0)
        return status;
    for (size_t i = 0; i < count; i++, buffer += width + 1) {
        if (prefixes[i].ip.family != family)
            return BERTH_STATUS_BAD_FAMILY;
        memcpy(buffer, prefixes[i].ip.bytes, width);
        buffer[width] = prefixes[i].length;
    }
    int32_t handle = berth_raw_set_create_prefixes(core, number_of(family), (int32_t)count);
    return berth_adopt_set(core, family, handle, set);
}

/* A handle means nothing in another instance. */
static int32_t peer(const struct berth_set *a, const struct berth_set *b)
{
    return a->core == b->core ? b->handle : 0;
}

int berth_set_union(const struct berth_set *a, const struct berth_set *b, struct berth_set *set)
{
    return berth_adopt_set(a->core, a->family, berth_raw_set_union(a->core, a->handle, peer(a, b)), set);
}

int berth_set_intersect(const struct berth_set *a, const struct berth_set *b, struct berth_set *set)
{
    return berth_adopt_set(a->core, a->family, berth_raw_set_intersect(a->core, a->handle, peer(a, b)), set);
}

int berth_set_subtract(const struct berth_set *a, const struct berth_set *b, struct berth_set *set)
{
    return berth_adopt_set(a->core, a->family, berth_raw_set_subtract(a->core, a->handle, peer(a, b)), set);
}

int berth_set_overlaps(const struct berth_set *a, const struct berth_set *b)
{
    return berth_raw_set_overlaps(a->core, a->handle, peer(a, b));
}

int berth_set_includes(const struct berth_set *a, const struct berth_set *b)
{
    return berth_raw_set_includes(a->core, a->handle, peer(a, b));
}

int berth_set_contains(const struct berth_set *set, const struct berth_ip *ip)
{
    if (ip->family != set->family)
        return 0;
    int status = pass_ip(set->core, ip);
    return status < 0 ? status : berth_raw_set_contains(set->core, set->handle);
}

int berth_set_contains_many(const struct berth_set *set, const void *packed, size_t count, uint8_t *found)
{
    int status = pass_packed(set->core, set->family, packed, count);
    if (status < 0)
        return status;
    int32_t inside = berth_raw_set_contains_many(set->core, set->handle, (int32_t)count);
    if (inside >= 0 && count > 0)
        memcpy(found, output(set->core), count);
    return inside;
}

int berth_set_size(const struct berth_set *set, struct berth_size *size)
{
    int32_t status = berth_raw_set_size(set->core, set->handle);
    if (status < 0)
        return status;
    *size = berth_read_size(output(set->core));
    return BERTH_STATUS_OK;
}

int berth_set_count(const struct berth_set *set)
{
    return berth_raw_set_count(set->core, set->handle);
}

int berth_set_ranges(const struct berth_set *set, struct berth_range *ranges, size_t capacity)
{
    int32_t count = berth_raw_set_ranges(set->core, set->handle);
    if (count < 0)
        return count;
    size_t width = width_of(set->family);
    const uint8_t *item = output(set->core);
    for (size_t i = 0; i < capacity && i < (size_t)count; i++, item += 2 * width)
        ranges[i] = (struct berth_range){read_ip(item, set->family), read_ip(item + width, set->family)};
    return count;
}

int berth_set_prefixes(const struct berth_set *set, struct berth_prefix *prefixes, size_t capacity)
{
    int32_t count = berth_raw_set_prefixes(set->core, set->handle);
    if (count < 0)
        return count;
    size_t width = width_of(set->family);
    const uint8_t *item = output(set->core);
    for (size_t i = 0; i < capacity && i < (size_t)count; i++, item += width + 1)
        prefixes[i] = (struct berth_prefix){read_ip(item, set->family), item[width]};
    return count;
}

struct berth_set berth_set_in(const struct berth_set *set, struct berth_core *copy)
{
    return (struct berth_set){copy, set->handle, set->family};
}

int berth_set_drop(const struct berth_set *set)
{
    return berth_raw_drop(set->core, set->handle);
}
