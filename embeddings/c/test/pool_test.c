/* Pools: taking and giving back, batches, runs, shapes, snapshots, misuse. */
#include "check.h"

static void test_one(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/30", "10.0.0.0");
    struct berth_ip found = ip("0.0.0.0"), masked = ip("10.0.0.0"), far = ip("10.0.1.0"), six = ip("::ffff:10.0.0.1");
    CHECK(berth_pool_find_free(&pool, 0, &found) == 1 && is_ip(&found, "10.0.0.1"));
    CHECK(berth_pool_allocate(&pool, BERTH_ASCENDING, 0, &found) == 1 && is_ip(&found, "10.0.0.1"));
    CHECK(berth_pool_claim(&pool, &found) == BERTH_TAKEN && berth_pool_test(&pool, &found) == 1);
    CHECK(berth_pool_claim(&pool, &masked) == BERTH_CLAIMED && berth_pool_contains(&pool, &masked) == 0);
    CHECK(berth_pool_claim(&pool, &far) == BERTH_CLAIM_OUTSIDE && berth_pool_release(&pool, &far) == BERTH_RELEASE_OUTSIDE);
    CHECK(berth_pool_test(&pool, &far) == 0 && berth_pool_contains(&pool, &far) == 0);
    CHECK(berth_pool_claim(&pool, &six) == BERTH_CLAIM_OUTSIDE && berth_pool_release(&pool, &six) == BERTH_RELEASE_OUTSIDE);
    CHECK(berth_pool_test(&pool, &six) == 0 && berth_pool_contains(&pool, &six) == 0);
    CHECK(berth_pool_allocate(&pool, BERTH_ROUND_ROBIN, 0, &found) == 1 && is_ip(&found, "10.0.0.2"));
    CHECK(berth_pool_allocate(&pool, BERTH_HASHED, 7, &found) == 1 && is_ip(&found, "10.0.0.3"));
    CHECK(berth_pool_allocate(&pool, BERTH_HASHED, 7, &found) == 0 && berth_pool_find_free(&pool, 2, &found) == 0);
    CHECK(is_ip(&found, "10.0.0.3"));
    CHECK(berth_pool_allocate(&pool, (enum berth_policy)9, 0, &found) == BERTH_STATUS_BAD_ARGUMENT);
    CHECK(berth_pool_release(&pool, &found) == BERTH_RELEASED && berth_pool_release(&pool, &found) == BERTH_FREE);

    struct berth_counts counts;
    CHECK(berth_pool_counts(&pool, &counts) == 0);
    CHECK(is_size(&counts.total, "3") && is_size(&counts.free, "1"));
    CHECK(counts.used == 3 && counts.used_masked == 1 && counts.window == 4 && counts.beyond == 0);
    uint16_t blocks[1];
    CHECK(berth_pool_free_per_block(&pool, blocks, 1) == 1 && blocks[0] == 1);
    CHECK(berth_pool_drop(&pool) == 0);
}

static void test_least_recently_freed(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/31", NULL);
    struct berth_ip found, last = ip("10.0.0.1");
    CHECK(berth_pool_allocate(&pool, BERTH_LEAST_RECENTLY_FREED, 0, &found) == BERTH_STATUS_BAD_ARGUMENT);
    CHECK(berth_pool_track_freed(&pool) == 0);
    CHECK(berth_pool_claim(&pool, &last) == BERTH_CLAIMED && berth_pool_release(&pool, &last) == BERTH_RELEASED);
    CHECK(berth_pool_allocate(&pool, BERTH_LEAST_RECENTLY_FREED, 0, &found) == 1 && is_ip(&found, "10.0.0.0"));
    CHECK(berth_pool_allocate(&pool, BERTH_LEAST_RECENTLY_FREED, 0, &found) == 1 && is_ip(&found, "10.0.0.1"));
    CHECK(berth_pool_drop(&pool) == 0);
}

static void test_batches(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/29", "10.0.0.0");
    struct in_addr packed[16];
    uint8_t found[16];
    CHECK(berth_pool_allocate_many(&pool, BERTH_ASCENDING, 0, packed, 3) == 3);
    CHECK(packed[0].s_addr == ip("10.0.0.1").v4.s_addr && packed[2].s_addr == ip("10.0.0.3").v4.s_addr);
    CHECK(berth_pool_allocate_many(&pool, BERTH_ASCENDING, 0, packed + 3, 13) == 4);
    CHECK(berth_pool_allocate_many(&pool, BERTH_ASCENDING, 0, packed, SIZE_MAX) == 0);
    packed[1] = ip("10.0.9.9").v4;
    packed[2] = ip("10.0.0.0").v4;
    CHECK(berth_pool_test_many(&pool, packed, 4, found) == 2 && memcmp(found, "\1\0\0\1", 4) == 0);
    CHECK(berth_pool_contains_many(&pool, packed, 4, found) == 2 && memcmp(found, "\1\0\0\1", 4) == 0);
    CHECK(berth_pool_release_many(&pool, packed, 4) == 2 && berth_pool_claim_many(&pool, packed, 4) == 3);
    CHECK(berth_pool_claim_many(&pool, NULL, 0) == 0);
    CHECK(berth_pool_claim_many(&pool, packed, BERTH_MAX_EXCHANGE / 4 + 1) == BERTH_STATUS_OVER_CEILING);
    CHECK(berth_pool_drop(&pool) == 0);
}

/*
 * A batch makes the buffer and the memory grow: what was derived before shows old bytes, but the functions derive it
 * anew.
 */
static void test_growth(void)
{
    enum { COUNT = 1 << 18 };
    struct berth_core *core = open_core();
    struct berth_pool pool = pool_of(core, "fd00::/64", NULL);
    int32_t before = berth_raw_exchange(core, 16);
    struct in6_addr *packed = malloc(COUNT * sizeof *packed);
    CHECK(packed != NULL && berth_pool_allocate_many(&pool, BERTH_ASCENDING, 0, packed, COUNT) == COUNT);
    CHECK(berth_raw_exchange(core, 0) != before);
    struct berth_ip last = {.family = AF_INET6, .v6 = packed[COUNT - 1]};
    CHECK(is_ip(&last, "fd00::3:ffff") && berth_pool_test(&pool, &last) == 1);
    CHECK(berth_pool_release_many(&pool, packed, COUNT) == COUNT);
    free(packed);
    berth_core_close(core);
}

static void test_runs(struct berth_core *core)
{
    struct berth_range ranges[] = {range("10.0.0.0-10.0.0.9"), range("10.0.1.0/24")}, found;
    struct berth_shape shape = {.ranges = ranges, .range_count = 2};
    struct berth_pool pool;
    CHECK(berth_pool_create(core, &shape, &pool) == 0);
    CHECK(berth_pool_find_free_run(&pool, 16, 4, 0, &found) == 1 && is_range(&found, "10.0.1.0-10.0.1.15"));
    CHECK(berth_pool_find_free_run(&pool, 257, 0, 0, &found) == 0);
    CHECK(berth_pool_find_free_run(&pool, UINT32_MAX, 0, 0, &found) == 0);
    CHECK(berth_pool_find_free_run(&pool, 0, 0, 0, &found) == BERTH_STATUS_BAD_ARGUMENT);
    CHECK(berth_pool_find_free_run(&pool, 1, 25, 0, &found) == BERTH_STATUS_BAD_ARGUMENT);
    struct berth_range run = range("10.0.1.8-10.0.1.15"), gap = range("10.0.0.8-10.0.1.1"), over = range("10.0.1.250-10.0.2.1");
    struct berth_range six = range("fd00::/126"), reversed = {run.last, run.first};
    CHECK(berth_pool_claim_run(&pool, &run) == BERTH_CLAIMED && berth_pool_claim_run(&pool, &run) == BERTH_TAKEN);
    CHECK(berth_pool_claim_run(&pool, &gap) == BERTH_CLAIM_OUTSIDE && berth_pool_claim_run(&pool, &over) == BERTH_CLAIM_OUTSIDE);
    CHECK(berth_pool_claim_run(&pool, &six) == BERTH_CLAIM_OUTSIDE);
    CHECK(berth_pool_claim_run(&pool, &reversed) == BERTH_STATUS_BAD_RANGE);
    CHECK(berth_pool_release_run(&pool, &over) == BERTH_STATUS_OUTSIDE);
    CHECK(berth_pool_release_run(&pool, &run) == 8 && berth_pool_release_run(&pool, &run) == 0);
    CHECK(berth_pool_drop(&pool) == 0);
}

static void test_beyond_the_window(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "fd00::/64", NULL);
    uint8_t seed[16];
    memset(seed, 0xaa, sizeof seed);
    struct berth_ip found, again;
    struct berth_counts counts;
    CHECK(berth_pool_find_free_wide(&pool, seed, &found) == 1 && is_ip(&found, "fd00::aaaa:aaaa:aaaa:aaaa"));
    CHECK(berth_pool_claim(&pool, &found) == BERTH_CLAIMED && berth_pool_claim(&pool, &found) == BERTH_TAKEN);
    CHECK(berth_pool_find_free_wide(&pool, seed, &again) == 1 && is_ip(&again, "fd00::aaaa:aaaa:aaaa:aaab"));
    CHECK(berth_pool_counts(&pool, &counts) == 0 && counts.beyond == 1 && counts.window == BERTH_MAX_WINDOW);
    CHECK(is_size(&counts.free, "18446744073709551615"));
    struct berth_range run = {found, found};
    CHECK(berth_pool_release_run(&pool, &run) == BERTH_STATUS_OUTSIDE);
    CHECK(berth_pool_release(&pool, &found) == BERTH_RELEASED && berth_pool_drop(&pool) == 0);
}

static void test_edit(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/24", NULL), stale = pool;
    struct berth_ip kept = ip("10.0.0.7"), lost = ip("10.0.0.200");
    CHECK(berth_pool_claim(&pool, &kept) == BERTH_CLAIMED && berth_pool_claim(&pool, &lost) == BERTH_CLAIMED);
    struct berth_range ranges = range("10.0.0.0/25"), masks = range("10.0.0.0-10.0.0.9"), six = range("fd00::/120"), only;
    CHECK(berth_pool_edit(&pool, &(struct berth_shape){&ranges, 1, &masks, 1}) == 0);
    CHECK(berth_pool_test(&pool, &kept) == 1 && berth_pool_claim(&pool, &lost) == BERTH_CLAIM_OUTSIDE);
    struct berth_set set;
    CHECK(berth_pool_used(&pool, &set) == 0 && berth_set_ranges(&set, &only, 1) == 1 && is_range(&only, "10.0.0.7"));
    CHECK(berth_set_drop(&set) == 0);
    CHECK(berth_pool_ranges(&pool, &set) == 0 && berth_set_ranges(&set, &only, 1) == 1);
    CHECK(is_range(&only, "10.0.0.0-10.0.0.127") && berth_set_drop(&set) == 0);
    CHECK(berth_pool_masks(&pool, &set) == 0 && berth_set_ranges(&set, &only, 1) == 1);
    CHECK(is_range(&only, "10.0.0.0-10.0.0.9") && berth_set_drop(&set) == 0);
    struct berth_shape other = {&six, 1, NULL, 0}, mixed = {&ranges, 1, &six, 1};
    CHECK(berth_pool_edit(&pool, &other) == BERTH_STATUS_BAD_FAMILY && berth_pool_edit(&pool, &mixed) == BERTH_STATUS_BAD_FAMILY);
    CHECK(berth_pool_edit(&pool, &(struct berth_shape){0}) == 0 && pool.handle == stale.handle);
    CHECK(berth_pool_edit(&pool, &other) == 0 && pool.family == AF_INET6);
    CHECK(berth_pool_track_freed(&stale) == BERTH_STATUS_BAD_HANDLE);
    CHECK(berth_pool_drop(&pool) == 0 && berth_raw_live_objects(core) == 0);
}

static void test_snapshots(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/24", NULL), twin = pool_of(core, "10.0.0.0/24", NULL);
    struct berth_pool other = pool_of(core, "10.0.1.0/24", NULL);
    struct berth_ip used = ip("10.0.0.7");
    uint8_t snapshot[256] = {0};
    CHECK(berth_pool_claim(&pool, &used) == BERTH_CLAIMED);
    int length = berth_pool_save(&pool, NULL, 0);
    CHECK(length > 32 && berth_pool_save(&pool, snapshot, (size_t)length - 1) == length && snapshot[0] == 0);
    CHECK(berth_pool_save(&pool, snapshot, sizeof snapshot) == length);
    CHECK(berth_pool_load(&twin, snapshot, (size_t)length) == BERTH_LOADED && berth_pool_test(&twin, &used) == 1);
    CHECK(berth_pool_load(&other, snapshot, (size_t)length) == BERTH_OTHER_POOL);
    CHECK(berth_pool_release(&twin, &used) == BERTH_RELEASED);
    for (int cut = 0; cut < length; cut++)
        CHECK(berth_pool_load(&twin, snapshot, (size_t)cut) == BERTH_DAMAGED);
    for (int at = 0; at < length; at++) {
        snapshot[at] ^= 1;
        int answer = berth_pool_load(&twin, snapshot, (size_t)length);
        CHECK(answer == BERTH_DAMAGED || answer == BERTH_OTHER_VERSION);
        snapshot[at] ^= 1;
    }
    CHECK(berth_pool_test(&twin, &used) == 0);
    CHECK(berth_pool_load(&twin, snapshot, (size_t)BERTH_MAX_EXCHANGE + 1) == BERTH_STATUS_OVER_CEILING);
    CHECK(berth_pool_drop(&pool) == 0 && berth_pool_drop(&twin) == 0 && berth_pool_drop(&other) == 0);
}

static void test_misuse(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/24", NULL), wrong = pool;
    struct berth_ip found = ip("10.0.0.1");
    struct berth_counts counts;
    wrong.handle = -1;
    CHECK(berth_pool_counts(&wrong, &counts) == BERTH_STATUS_BAD_HANDLE);
    CHECK(berth_pool_drop(&pool) == 0 && berth_pool_drop(&pool) == BERTH_STATUS_BAD_HANDLE);
    CHECK(berth_pool_allocate(&pool, BERTH_ASCENDING, 0, &found) == BERTH_STATUS_BAD_HANDLE && is_ip(&found, "10.0.0.1"));
    CHECK(berth_pool_claim(&pool, &found) == BERTH_STATUS_BAD_HANDLE);
    CHECK(berth_pool_claim_many(&pool, &found.v4, 1) == BERTH_STATUS_BAD_HANDLE);
    struct berth_set set = set_of(core, "10.0.0.0/24");
    wrong.handle = set.handle;
    CHECK(berth_pool_test(&wrong, &found) == BERTH_STATUS_BAD_HANDLE && berth_set_drop(&set) == 0);
}

static void test_many_pools(void)
{
    struct berth_core *core = open_core();
    struct berth_pool first = pool_of(core, "10.0.0.0/24", NULL);
    CHECK(berth_pool_drop(&first) == 0);
    int32_t bytes = berth_raw_state_bytes(core);
    for (int i = 1; i < 100000; i++) {
        struct berth_pool pool = pool_of(core, "10.0.0.0/24", NULL);
        CHECK(berth_pool_drop(&pool) == 0);
    }
    CHECK(berth_raw_state_bytes(core) == bytes && berth_raw_live_objects(core) == 0);
    berth_core_close(core);
}

int main(void)
{
    struct berth_core *core = open_core();
    test_one(core);
    test_least_recently_freed(core);
    test_batches(core);
    test_runs(core);
    test_beyond_the_window(core);
    test_edit(core);
    test_snapshots(core);
    test_misuse(core);
    CHECK(berth_raw_live_objects(core) == 0);
    berth_core_close(core);
    test_growth();
    test_many_pools();
    puts("pool: passed");
    return 0;
}
