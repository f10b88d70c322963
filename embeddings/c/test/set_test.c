/* Sets: algebra, questions, lists, misuse. */
#include "check.h"

static void test_algebra(struct berth_core *core)
{
    struct berth_set a = set_of(core, "10.0.0.0/24"), b = set_of(core, "10.0.0.128-10.0.1.9"), found;
    struct berth_range ranges[2];
    CHECK(berth_set_union(&a, &b, &found) == 0 && berth_set_ranges(&found, ranges, 2) == 1);
    CHECK(is_range(&ranges[0], "10.0.0.0-10.0.1.9") && berth_set_includes(&found, &b) == 1);
    CHECK(berth_set_drop(&found) == 0);
    CHECK(berth_set_intersect(&a, &b, &found) == 0 && berth_set_ranges(&found, ranges, 2) == 1);
    CHECK(is_range(&ranges[0], "10.0.0.128-10.0.0.255") && berth_set_overlaps(&found, &a) == 1);
    CHECK(berth_set_drop(&found) == 0);
    CHECK(berth_set_subtract(&a, &b, &found) == 0 && berth_set_ranges(&found, ranges, 2) == 1);
    CHECK(is_range(&ranges[0], "10.0.0.0-10.0.0.127") && berth_set_overlaps(&found, &b) == 0);
    CHECK(berth_set_includes(&found, &a) == 0);
    CHECK(berth_set_drop(&found) == 0 && berth_set_drop(&a) == 0 && berth_set_drop(&b) == 0);
    CHECK(berth_raw_live_objects(core) == 0);
}

static void test_questions(struct berth_core *core)
{
    struct berth_set set = set_of(core, "fd00::/126");
    struct berth_ip inside = ip("fd00::3"), outside = ip("fd00::4"), four = ip("10.0.0.1");
    CHECK(berth_set_contains(&set, &inside) == 1);
    CHECK(berth_set_contains(&set, &outside) == 0);
    CHECK(berth_set_contains(&set, &four) == 0);
    struct in6_addr packed[] = {outside.v6, inside.v6, ip("fd00::").v6};
    uint8_t found[3];
    CHECK(berth_set_contains_many(&set, packed, 3, found) == 2);
    CHECK(found[0] == 0 && found[1] == 1 && found[2] == 1);
    CHECK(berth_set_contains_many(&set, NULL, 0, NULL) == 0);
    CHECK(berth_set_contains_many(&set, packed, SIZE_MAX / 8, found) == BERTH_STATUS_OVER_CEILING);
    CHECK(berth_set_drop(&set) == 0);
}

static void test_lists(struct berth_core *core)
{
    struct berth_prefix prefixes[] = {prefix("10.0.0.77/25"), prefix("10.0.0.128/25"), prefix("10.0.2.0/32")};
    struct berth_set set;
    CHECK(berth_set_create_prefixes(core, AF_INET, prefixes, 3, &set) == 0 && berth_set_count(&set) == 2);
    struct berth_prefix found[2];
    CHECK(berth_set_prefixes(&set, NULL, 0) == 2);
    found[1] = prefix("1.1.1.1/1");
    CHECK(berth_set_prefixes(&set, found, 1) == 2 && is_prefix(&found[0], "10.0.0.0/24"));
    CHECK(is_prefix(&found[1], "1.1.1.1/1"));
    CHECK(berth_set_prefixes(&set, found, 2) == 2 && is_prefix(&found[1], "10.0.2.0/32"));
    struct berth_range ranges[1];
    CHECK(berth_set_ranges(&set, NULL, 0) == 2);
    CHECK(berth_set_ranges(&set, ranges, 1) == 2 && is_range(&ranges[0], "10.0.0.0/24") == 0);
    CHECK(is_range(&ranges[0], "10.0.0.0-10.0.0.255"));
    CHECK(berth_set_drop(&set) == 0);
}

static void test_sizes(struct berth_core *core)
{
    const char *rows[][2] = {
        {"::/0", "340282366920938463463374607431768211456"},
        {"0.0.0.0/0", "4294967296"},
        {"fd00::/64", "18446744073709551616"},
        {"fd00::-fd00::1:2:3:4:5", "18447307036548136966"},
        {"10.0.0.1", "1"},
    };
    struct berth_size size;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct berth_set set = set_of(core, rows[i][0]);
        CHECK(berth_set_size(&set, &size) == 0 && is_size(&size, rows[i][1]));
        CHECK(berth_set_drop(&set) == 0);
    }
    struct berth_set empty;
    CHECK(berth_set_create(core, AF_INET6, NULL, 0, &empty) == 0 && berth_set_size(&empty, &size) == 0);
    CHECK(is_size(&size, "0") && berth_set_drop(&empty) == 0);
}

static void test_misuse(struct berth_core *core)
{
    struct berth_set four = set_of(core, "10.0.0.0/24"), six = set_of(core, "fd00::/64"), found = four;
    CHECK(berth_set_union(&four, &six, &found) == BERTH_STATUS_BAD_FAMILY);
    CHECK(berth_set_overlaps(&four, &six) == BERTH_STATUS_BAD_FAMILY);
    CHECK(found.handle == four.handle);
    struct berth_range mixed[] = {range("10.0.0.0/24"), range("fd00::/64")}, reversed = range("10.0.0.1");
    CHECK(berth_set_create(core, AF_INET, mixed, 2, &found) == BERTH_STATUS_BAD_FAMILY);
    CHECK(berth_set_create(core, AF_UNIX, mixed, 0, &found) == BERTH_STATUS_BAD_FAMILY);
    CHECK(berth_set_create(core, AF_INET, mixed, SIZE_MAX / 4, &found) == BERTH_STATUS_OVER_CEILING);
    reversed.last = ip("10.0.0.0");
    CHECK(berth_set_create(core, AF_INET, &reversed, 1, &found) == BERTH_STATUS_BAD_RANGE);
    struct berth_prefix long_one = {ip("10.0.0.0"), 33};
    CHECK(berth_set_create_prefixes(core, AF_INET, &long_one, 1, &found) == BERTH_STATUS_BAD_ARGUMENT);
    CHECK(berth_set_drop(&six) == 0 && berth_set_drop(&six) == BERTH_STATUS_BAD_HANDLE);
    struct berth_size size = {.low = 7};
    CHECK(berth_set_size(&six, &size) == BERTH_STATUS_BAD_HANDLE && size.low == 7);
    CHECK(berth_set_drop(&four) == 0 && berth_raw_live_objects(core) == 0);
}

int main(void)
{
    struct berth_core *core = open_core();
    test_algebra(core);
    test_questions(core);
    test_lists(core);
    test_sizes(core);
    test_misuse(core);
    berth_core_close(core);
    puts("set: passed");
    return 0;
}
