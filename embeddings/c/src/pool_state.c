#include "internal.h"

static sa_family_t family_of(const struct berth_shape *shape, sa_family_t otherwise)
{
    if (shape->range_count > 0)
        return shape->ranges[0].first.family;
    return shape->mask_count > 0 ? shape->masks[0].first.family : otherwise;
}

/* Makes the two sets of a shape; they end with drop_sets. */
static int create_sets(struct berth_core *core, const struct berth_shape *shape, sa_family_t family,
                       struct berth_set *ranges, struct berth_set *masks)
{
    int status = berth_set_create(core, family, shape->ranges, shape->range_count, ranges);
    if (status < 0)
        return status;
    status = berth_set_create(core, family, shape->masks, shape->mask_count, masks);
    if (status < 0)
        berth_set_drop(ranges);
    return status;
}

int berth_pool_create(struct berth_core *core, const struct berth_shape *shape, struct berth_pool *pool)
{
    sa_family_t family = family_of(shape, AF_INET);
    struct berth_set ranges, masks;
    int status = create_sets(core, shape, family, &ranges, &masks);
    if (status < 0)
        return status;
    int32_t handle = berth_raw_pool_create(core, ranges.handle, masks.handle);
    berth_set_drop(&masks);
    berth_set_drop(&ranges);
    if (handle < 0)
        return handle;
    *pool = (struct berth_pool){core, handle, family};
    return BERTH_STATUS_OK;
}

/* Puts a pool of the other family in the place of one without addresses. */
static int replace(struct berth_pool *pool, const struct berth_shape *shape)
{
    struct berth_counts counts;
    int status = berth_pool_counts(pool, &counts);
    if (status < 0)
        return status;
    if (counts.window > 0)
        return BERTH_STATUS_BAD_FAMILY;
    struct berth_pool successor;
    status = berth_pool_create(pool->core, shape, &successor);
    if (status < 0)
        return status;
    berth_pool_drop(pool);
    *pool = successor;
    return BERTH_STATUS_OK;
}

int berth_pool_edit(struct berth_pool *pool, const struct berth_shape *shape)
{
    sa_family_t family = family_of(shape, pool->family);
    if (family != pool->family)
        return replace(pool, shape);
    struct berth_set ranges, masks;
    int status = create_sets(pool->core, shape, family, &ranges, &masks);
    if (status < 0)
        return status;
    status = berth_raw_pool_edit(pool->core, pool->handle, ranges.handle, masks.handle);
    berth_set_drop(&masks);
    berth_set_drop(&ranges);
    return status;
}

/* Numbers in the exchange buffer are little-endian, whatever the processor is. */
static uint64_t read_number(const uint8_t *bytes, int length)
{
    uint64_t number = 0;
    for (int i = length - 1; i >= 0; i--)
        number = number << 8 | bytes[i];
    return number;
}

static struct berth_size subtract(struct berth_size a, struct berth_size b)
{
    uint64_t borrow = a.low < b.low;
    uint64_t borrow_high = a.high < b.high || (a.high == b.high && borrow);
    return (struct berth_size){a.over - b.over - borrow_high, a.high - b.high - borrow, a.low - b.low};
}

int berth_pool_counts(const struct berth_pool *pool, struct berth_counts *counts)
{
    int32_t status = berth_raw_pool_counts(pool->core, pool->handle);
    if (status < 0)
        return status;
    const uint8_t *at = output(pool->core);
    struct berth_size size = berth_read_size(at + BERTH_COUNTS_AT_SIZE);
    counts->total = subtract(size, berth_read_size(at + BERTH_COUNTS_AT_MASKED));
    counts->used = (uint32_t)read_number(at + BERTH_COUNTS_AT_USED, 4);
    counts->used_masked = (uint32_t)read_number(at + BERTH_COUNTS_AT_USED_MASKED, 4);
    counts->beyond = (uint32_t)read_number(at + BERTH_COUNTS_AT_BEYOND, 4);
    counts->window = (uint32_t)read_number(at + BERTH_COUNTS_AT_WINDOW, 4);
    counts->digest = read_number(at + BERTH_COUNTS_AT_DIGEST, 8);
    counts->free = subtract(counts->total, (struct berth_size){.low = counts->used - counts->used_masked});
    return BERTH_STATUS_OK;
}

int berth_pool_free_per_block(const struct berth_pool *pool, uint16_t *blocks, size_t capacity)
{
    int32_t count = berth_raw_pool_blocks(pool->core, pool->handle);
    if (count < 0)
        return count;
    const uint8_t *block = output(pool->core);
    for (size_t i = 0; i < capacity && i < (size_t)count; i++, block += 2)
        blocks[i] = (uint16_t)read_number(block, 2);
    return count;
}

int berth_pool_used(const struct berth_pool *pool, struct berth_set *set)
{
    return berth_adopt_set(pool->core, pool->family, berth_raw_pool_used(pool->core, pool->handle), set);
}

int berth_pool_ranges(const struct berth_pool *pool, struct berth_set *set)
{
    return berth_adopt_set(pool->core, pool->family, berth_raw_pool_ranges(pool->core, pool->handle), set);
}

int berth_pool_masks(const struct berth_pool *pool, struct berth_set *set)
{
    return berth_adopt_set(pool->core, pool->family, berth_raw_pool_masks(pool->core, pool->handle), set);
}

int berth_pool_save(const struct berth_pool *pool, void *snapshot, size_t capacity)
{
    int32_t length = berth_raw_pool_save(pool->core, pool->handle);
    if (length > 0 && (size_t)length <= capacity)
        memcpy(snapshot, output(pool->core), (size_t)length);
    return length;
}

int berth_pool_load(const struct berth_pool *pool, const void *snapshot, size_t length)
{
    uint8_t *buffer;
    int status = reserve(pool->core, length, 1, &buffer);
    if (status < 0)
        return status;
    if (length > 0)
        memcpy(buffer, snapshot, length);
    switch (status = berth_raw_pool_load(pool->core, pool->handle, (int32_t)length)) {
    case BERTH_STATUS_BAD_SNAPSHOT:
        return BERTH_DAMAGED;
    case BERTH_STATUS_OTHER_VERSION:
        return BERTH_OTHER_VERSION;
    case BERTH_STATUS_OTHER_POOL:
        return BERTH_OTHER_POOL;
    default:
        return status;
    }
}

int berth_pool_track_freed(const struct berth_pool *pool)
{
    return berth_raw_pool_track_freed(pool->core, pool->handle);
}

struct berth_pool berth_pool_in(const struct berth_pool *pool, struct berth_core *copy)
{
    return (struct berth_pool){copy, pool->handle, pool->family};
}

int berth_pool_drop(const struct berth_pool *pool)
{
    return berth_raw_drop(pool->core, pool->handle);
}
