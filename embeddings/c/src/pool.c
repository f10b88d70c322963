#include "internal.h"

/* 1 with the address that a call left in the exchange buffer, 0 when it found none; or its status. */
static int take_ip(const struct berth_pool *pool, int32_t status, struct berth_ip *ip)
{
    if (status < 0)
        return status == BERTH_STATUS_NONE ? 0 : status;
    *ip = read_ip(output(pool->core), pool->family);
    return 1;
}

/* The same for a call that gave an ordinal, with the exchange buffer open. */
static int take_ordinal(const struct berth_pool *pool, int32_t ordinal, struct berth_ip *ip)
{
    if (ordinal < 0)
        return ordinal == BERTH_STATUS_NONE ? 0 : ordinal;
    return take_ip(pool, berth_raw_pool_address(pool->core, pool->handle, (uint32_t)ordinal), ip);
}

int berth_pool_allocate(const struct berth_pool *pool, enum berth_policy policy, uint32_t seed, struct berth_ip *ip)
{
    int status = open_exchange(pool->core);
    if (status < 0)
        return status;
    return take_ordinal(pool, berth_raw_pool_allocate(pool->core, pool->handle, (int32_t)policy, seed), ip);
}

int berth_pool_allocate_many(const struct berth_pool *pool, enum berth_policy policy, uint32_t seed, void *packed,
                             size_t count)
{
    int32_t most = count < BERTH_MAX_WINDOW ? (int32_t)count : BERTH_MAX_WINDOW;
    int32_t taken = berth_raw_pool_allocate_many(pool->core, pool->handle, (int32_t)policy, seed, most);
    if (taken > 0)
        memcpy(packed, output(pool->core), (size_t)taken * width_of(pool->family));
    return taken;
}

int berth_pool_find_free(const struct berth_pool *pool, uint32_t seed, struct berth_ip *ip)
{
    int status = open_exchange(pool->core);
    if (status < 0)
        return status;
    return take_ordinal(pool, berth_raw_pool_find(pool->core, pool->handle, seed), ip);
}

int berth_pool_find_free_wide(const struct berth_pool *pool, const uint8_t seed[16], struct berth_ip *ip)
{
    uint8_t *buffer;
    int status = reserve(pool->core, 1, 16, &buffer);
    if (status < 0)
        return status;
    memcpy(buffer, seed, 16);
    return take_ip(pool, berth_raw_pool_find_wide(pool->core, pool->handle), ip);
}

int berth_pool_find_free_run(const struct berth_pool *pool, uint32_t count, int align_bits, uint32_t seed,
                             struct berth_range *run)
{
    if (count > BERTH_MAX_WINDOW)
        return 0;
    int status = open_exchange(pool->core);
    if (status < 0)
        return status;
    struct berth_ip first;
    int32_t ordinal = berth_raw_pool_find_run(pool->core, pool->handle, seed, (int32_t)count, align_bits);
    int found = take_ordinal(pool, ordinal, &first);
    if (found != 1)
        return found;
    /* The addresses of a run follow one another, and so do their ordinals. */
    struct berth_range range = {.first = first};
    found = take_ordinal(pool, ordinal + (int32_t)count - 1, &range.last);
    if (found == 1)
        *run = range;
    return found;
}

/* Returns the answer to a question about one address; one of the other family is outside. */
static int ask(const struct berth_pool *pool, const struct berth_ip *ip,
               int32_t (*operation)(struct berth_core *core, int32_t pool))
{
    if (ip->family != pool->family)
        return BERTH_STATUS_OUTSIDE;
    int status = pass_ip(pool->core, ip);
    return status < 0 ? status : operation(pool->core, pool->handle);
}

int berth_pool_contains(const struct berth_pool *pool, const struct berth_ip *ip)
{
    int answer = ask(pool, ip, berth_raw_pool_contains);
    return answer == BERTH_STATUS_OUTSIDE ? 0 : answer;
}

int berth_pool_test(const struct berth_pool *pool, const struct berth_ip *ip)
{
    int answer = ask(pool, ip, berth_raw_pool_test);
    return answer == BERTH_STATUS_OUTSIDE ? 0 : answer;
}

int berth_pool_claim(const struct berth_pool *pool, const struct berth_ip *ip)
{
    int answer = ask(pool, ip, berth_raw_pool_claim);
    return answer == BERTH_STATUS_OUTSIDE ? BERTH_CLAIM_OUTSIDE : answer;
}

int berth_pool_release(const struct berth_pool *pool, const struct berth_ip *ip)
{
    int answer = ask(pool, ip, berth_raw_pool_release);
    return answer == BERTH_STATUS_OUTSIDE ? BERTH_RELEASE_OUTSIDE : answer;
}

/* Returns the number of packed addresses that gave 1; sets each of `found`, unless that is NULL, to 1 or 0. */
static int ask_many(const struct berth_pool *pool, const void *packed, size_t count, uint8_t *found,
                    int32_t (*operation)(struct berth_core *core, int32_t pool, int32_t count))
{
    int status = pass_packed(pool->core, pool->family, packed, count);
    if (status < 0)
        return status;
    int32_t done = operation(pool->core, pool->handle, (int32_t)count);
    if (done < 0 || found == NULL)
        return done;
    const uint8_t *answers = output(pool->core);
    for (size_t i = 0; i < count; i++)
        found[i] = answers[i] == 1;
    return done;
}

int berth_pool_contains_many(const struct berth_pool *pool, const void *packed, size_t count, uint8_t *found)
{
    return ask_many(pool, packed, count, found, berth_raw_pool_contains_many);
}

int berth_pool_test_many(const struct berth_pool *pool, const void *packed, size_t count, uint8_t *found)
{
    return ask_many(pool, packed, count, found, berth_raw_pool_test_many);
}

int berth_pool_claim_many(const struct berth_pool *pool, const void *packed, size_t count)
{
    return ask_many(pool, packed, count, NULL, berth_raw_pool_claim_many);
}

int berth_pool_release_many(const struct berth_pool *pool, const void *packed, size_t count)
{
    return ask_many(pool, packed, count, NULL, berth_raw_pool_release_many);
}

/* The ordinals of a range as its first one and their number; OUTSIDE unless all of it lies in the window. */
static int find_run(const struct berth_pool *pool, const struct berth_range *run, uint32_t *first, int32_t *count)
{
    int32_t start = ask(pool, &run->first, berth_raw_pool_ordinal);
    int32_t end = ask(pool, &run->last, berth_raw_pool_ordinal);
    if (start < 0 || end < 0)
        return start < 0 ? start : end;
    if (end < start)
        return BERTH_STATUS_BAD_RANGE;
    /* Ordinals go on where addresses leave a gap. The window has fewer than 2^32 addresses, so the low bits tell. */
    size_t at = width_of(pool->family) - 4;
    uint32_t low[2];
    memcpy(&low[0], run->first.bytes + at, 4);
    memcpy(&low[1], run->last.bytes + at, 4);
    if (ntohl(low[1]) - ntohl(low[0]) != (uint32_t)(end - start))
        return BERTH_STATUS_OUTSIDE;
    *first = (uint32_t)start;
    *count = end - start + 1;
    return BERTH_STATUS_OK;
}

int berth_pool_claim_run(const struct berth_pool *pool, const struct berth_range *run)
{
    uint32_t first;
    int32_t count;
    int status = find_run(pool, run, &first, &count);
    if (status < 0)
        return status == BERTH_STATUS_OUTSIDE ? BERTH_CLAIM_OUTSIDE : status;
    return berth_raw_pool_claim_run(pool->core, pool->handle, first, count);
}

int berth_pool_release_run(const struct berth_pool *pool, const struct berth_range *run)
{
    uint32_t first;
    int32_t count;
    int status = find_run(pool, run, &first, &count);
    return status < 0 ? status : berth_raw_pool_release_run(pool->core, pool->handle, first, count);
}
