/* Written from assembly/abi.json, never by hand. */
#include "internal.h"

/* By the code without its sign. */
static const struct {
    int code;
    const char *name;
    const char *text;
} statuses[] = {
    {0, "OK", "Done; for operations without another result."},
    {-1, "BAD_HANDLE", "No live object of the wanted kind has this handle."},
    {-2, "BAD_FAMILY", "A family other than 4 and 6, or two objects of different families."},
    {-3, "BAD_RANGE", "A range whose first address is above its last."},
    {-4, "BAD_ARGUMENT", "A count, length, policy or alignment outside what the operation allows."},
    {-5, "SHORT_EXCHANGE", "The exchange buffer is shorter than the input that the arguments promise, or than the output."},
    {-6, "NO_MEMORY", "Linear memory cannot grow any further. Nothing has changed."},
    {-7, "OVER_CEILING", "A ceiling, below, is reached. Nothing has changed."},
    {-8, "OUTSIDE", "The address or ordinal lies outside the pool's ranges, or window."},
    {-9, "NONE", "Nothing of the kind asked for is there."},
    {-10, "BAD_SNAPSHOT", "A snapshot that is damaged or cut short."},
    {-11, "OTHER_VERSION", "A snapshot of another version of the format."},
    {-12, "OTHER_POOL", "A sound snapshot of a pool with other ranges."},
};

const char *berth_strerror(int status)
{
    return status <= 0 && status >= -12 ? statuses[-status].text : "Not a status.";
}

const char *berth_status_name(int status)
{
    return status <= 0 && status >= -12 ? statuses[-status].name : "UNKNOWN";
}

int32_t berth_raw_abi_version(struct berth_core *core)
{
    return (int32_t)Z_berth_coreZ_abi_version(&core->wasm);
}

int32_t berth_raw_exchange(struct berth_core *core, int32_t bytes)
{
    return (int32_t)Z_berth_coreZ_exchange(&core->wasm, (uint32_t)bytes);
}

int32_t berth_raw_exchange_size(struct berth_core *core)
{
    return (int32_t)Z_berth_coreZ_exchange_size(&core->wasm);
}

int32_t berth_raw_drop(struct berth_core *core, int32_t handle)
{
    return (int32_t)Z_berth_coreZ_drop(&core->wasm, (uint32_t)handle);
}

int32_t berth_raw_state_bytes(struct berth_core *core)
{
    return (int32_t)Z_berth_coreZ_state_bytes(&core->wasm);
}

int32_t berth_raw_live_objects(struct berth_core *core)
{
    return (int32_t)Z_berth_coreZ_live_objects(&core->wasm);
}

int32_t berth_raw_prefix_first(struct berth_core *core, int32_t family, int32_t length)
{
    return (int32_t)Z_berth_coreZ_prefix_first(&core->wasm, (uint32_t)family, (uint32_t)length);
}

int32_t berth_raw_prefix_last(struct berth_core *core, int32_t family, int32_t length)
{
    return (int32_t)Z_berth_coreZ_prefix_last(&core->wasm, (uint32_t)family, (uint32_t)length);
}

int32_t berth_raw_prefix_mask(struct berth_core *core, int32_t family, int32_t length)
{
    return (int32_t)Z_berth_coreZ_prefix_mask(&core->wasm, (uint32_t)family, (uint32_t)length);
}

int32_t berth_raw_prefix_next(struct berth_core *core, int32_t family, int32_t length)
{
    return (int32_t)Z_berth_coreZ_prefix_next(&core->wasm, (uint32_t)family, (uint32_t)length);
}

int32_t berth_raw_prefix_part(struct berth_core *core, int32_t family, int32_t length, int32_t part_length, uint32_t index)
{
    return (int32_t)Z_berth_coreZ_prefix_part(&core->wasm, (uint32_t)family, (uint32_t)length, (uint32_t)part_length, index);
}

int32_t berth_raw_prefix_common(struct berth_core *core, int32_t family)
{
    return (int32_t)Z_berth_coreZ_prefix_common(&core->wasm, (uint32_t)family);
}

int32_t berth_raw_set_create(struct berth_core *core, int32_t family, int32_t count)
{
    return (int32_t)Z_berth_coreZ_set_create(&core->wasm, (uint32_t)family, (uint32_t)count);
}

int32_t berth_raw_set_create_prefixes(struct berth_core *core, int32_t family, int32_t count)
{
    return (int32_t)Z_berth_coreZ_set_create_prefixes(&core->wasm, (uint32_t)family, (uint32_t)count);
}

int32_t berth_raw_set_union(struct berth_core *core, int32_t a, int32_t b)
{
    return (int32_t)Z_berth_coreZ_set_union(&core->wasm, (uint32_t)a, (uint32_t)b);
}

int32_t berth_raw_set_intersect(struct berth_core *core, int32_t a, int32_t b)
{
    return (int32_t)Z_berth_coreZ_set_intersect(&core->wasm, (uint32_t)a, (uint32_t)b);
}

int32_t berth_raw_set_subtract(struct berth_core *core, int32_t a, int32_t b)
{
    return (int32_t)Z_berth_coreZ_set_subtract(&core->wasm, (uint32_t)a, (uint32_t)b);
}

int32_t berth_raw_set_overlaps(struct berth_core *core, int32_t a, int32_t b)
{
    return (int32_t)Z_berth_coreZ_set_overlaps(&core->wasm, (uint32_t)a, (uint32_t)b);
}

int32_t berth_raw_set_includes(struct berth_core *core, int32_t a, int32_t b)
{
    return (int32_t)Z_berth_coreZ_set_includes(&core->wasm, (uint32_t)a, (uint32_t)b);
}

int32_t berth_raw_set_contains(struct berth_core *core, int32_t set)
{
    return (int32_t)Z_berth_coreZ_set_contains(&core->wasm, (uint32_t)set);
}

int32_t berth_raw_set_contains_many(struct berth_core *core, int32_t set, int32_t count)
{
    return (int32_t)Z_berth_coreZ_set_contains_many(&core->wasm, (uint32_t)set, (uint32_t)count);
}

int32_t berth_raw_set_count(struct berth_core *core, int32_t set)
{
    return (int32_t)Z_berth_coreZ_set_count(&core->wasm, (uint32_t)set);
}

int32_t berth_raw_set_size(struct berth_core *core, int32_t set)
{
    return (int32_t)Z_berth_coreZ_set_size(&core->wasm, (uint32_t)set);
}

int32_t berth_raw_set_ranges(struct berth_core *core, int32_t set)
{
    return (int32_t)Z_berth_coreZ_set_ranges(&core->wasm, (uint32_t)set);
}

int32_t berth_raw_set_prefixes(struct berth_core *core, int32_t set)
{
    return (int32_t)Z_berth_coreZ_set_prefixes(&core->wasm, (uint32_t)set);
}

int32_t berth_raw_pool_create(struct berth_core *core, int32_t ranges, int32_t masks)
{
    return (int32_t)Z_berth_coreZ_pool_create(&core->wasm, (uint32_t)ranges, (uint32_t)masks);
}

int32_t berth_raw_pool_edit(struct berth_core *core, int32_t pool, int32_t ranges, int32_t masks)
{
    return (int32_t)Z_berth_coreZ_pool_edit(&core->wasm, (uint32_t)pool, (uint32_t)ranges, (uint32_t)masks);
}

int32_t berth_raw_pool_track_freed(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_track_freed(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_counts(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_counts(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_blocks(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_blocks(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_ranges(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_ranges(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_masks(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_masks(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_used(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_used(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_save(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_save(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_load(struct berth_core *core, int32_t pool, int32_t length)
{
    return (int32_t)Z_berth_coreZ_pool_load(&core->wasm, (uint32_t)pool, (uint32_t)length);
}

int32_t berth_raw_pool_contains(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_contains(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_test(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_test(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_claim(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_claim(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_release(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_release(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_contains_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_contains_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_test_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_test_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_claim_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_claim_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_release_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_release_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_test_at(struct berth_core *core, int32_t pool, uint32_t ordinal)
{
    return (int32_t)Z_berth_coreZ_pool_test_at(&core->wasm, (uint32_t)pool, ordinal);
}

int32_t berth_raw_pool_claim_at(struct berth_core *core, int32_t pool, uint32_t ordinal)
{
    return (int32_t)Z_berth_coreZ_pool_claim_at(&core->wasm, (uint32_t)pool, ordinal);
}

int32_t berth_raw_pool_release_at(struct berth_core *core, int32_t pool, uint32_t ordinal)
{
    return (int32_t)Z_berth_coreZ_pool_release_at(&core->wasm, (uint32_t)pool, ordinal);
}

int32_t berth_raw_pool_test_at_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_test_at_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_claim_at_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_claim_at_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_release_at_many(struct berth_core *core, int32_t pool, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_release_at_many(&core->wasm, (uint32_t)pool, (uint32_t)count);
}

int32_t berth_raw_pool_claim_run(struct berth_core *core, int32_t pool, uint32_t first, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_claim_run(&core->wasm, (uint32_t)pool, first, (uint32_t)count);
}

int32_t berth_raw_pool_release_run(struct berth_core *core, int32_t pool, uint32_t first, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_release_run(&core->wasm, (uint32_t)pool, first, (uint32_t)count);
}

int32_t berth_raw_pool_address(struct berth_core *core, int32_t pool, uint32_t ordinal)
{
    return (int32_t)Z_berth_coreZ_pool_address(&core->wasm, (uint32_t)pool, ordinal);
}

int32_t berth_raw_pool_ordinal(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_ordinal(&core->wasm, (uint32_t)pool);
}

int32_t berth_raw_pool_find(struct berth_core *core, int32_t pool, uint32_t start)
{
    return (int32_t)Z_berth_coreZ_pool_find(&core->wasm, (uint32_t)pool, start);
}

int32_t berth_raw_pool_allocate(struct berth_core *core, int32_t pool, int32_t policy, uint32_t argument)
{
    return (int32_t)Z_berth_coreZ_pool_allocate(&core->wasm, (uint32_t)pool, (uint32_t)policy, argument);
}

int32_t berth_raw_pool_allocate_many(struct berth_core *core, int32_t pool, int32_t policy, uint32_t argument, int32_t count)
{
    return (int32_t)Z_berth_coreZ_pool_allocate_many(&core->wasm, (uint32_t)pool, (uint32_t)policy, argument, (uint32_t)count);
}

int32_t berth_raw_pool_find_run(struct berth_core *core, int32_t pool, uint32_t start, int32_t count, int32_t align_bits)
{
    return (int32_t)Z_berth_coreZ_pool_find_run(&core->wasm, (uint32_t)pool, start, (uint32_t)count, (uint32_t)align_bits);
}

int32_t berth_raw_pool_find_wide(struct berth_core *core, int32_t pool)
{
    return (int32_t)Z_berth_coreZ_pool_find_wide(&core->wasm, (uint32_t)pool);
}
