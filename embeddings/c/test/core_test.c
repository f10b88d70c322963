/* The instance, addresses as text and as sockets, prefixes. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/resource.h>

static void test_status(void)
{
    CHECK(strcmp(berth_status_name(BERTH_STATUS_BAD_HANDLE), "BAD_HANDLE") == 0);
    CHECK(strcmp(berth_strerror(BERTH_STATUS_OTHER_POOL), "A sound snapshot of a pool with other ranges.") == 0);
    CHECK(strcmp(berth_strerror(-13), "Not a status.") == 0);
    CHECK(strcmp(berth_status_name(1), "UNKNOWN") == 0);
}

static void test_ip_text(void)
{
    struct berth_ip found = ip("10.0.0.1");
    CHECK(found.family == AF_INET && found.v4.s_addr == htonl(0x0a000001));
    found = ip("::ffff:10.0.0.1");
    CHECK(found.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&found.v6) && is_ip(&found, "::ffff:10.0.0.1"));
    const char *wrong[] = {"", "10.0.0", "10.0.0.256", "010.0.0.1", "10.0.0.1 ", "fe80::1%eth0", "fe80::1%1", ":", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(berth_ip_parse(wrong[i], &found) == BERTH_STATUS_BAD_ARGUMENT);
    CHECK(is_ip(&found, "::ffff:10.0.0.1"));
    struct berth_ip four = ip("10.0.0.1"), six = ip("::a00:1");
    CHECK(berth_ip_equal(&four, &four) && !berth_ip_equal(&four, &six));
}

static void test_range_text(void)
{
    struct berth_range found = range("10.0.1.77/23");
    CHECK(is_range(&found, "10.0.0.0-10.0.1.255"));
    found = range("fd00::/0");
    CHECK(is_range(&found, "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    found = range("10.0.0.9");
    CHECK(is_range(&found, "10.0.0.9"));
    CHECK(berth_range_parse("10.0.0.9-10.0.0.8", &found) == BERTH_STATUS_BAD_RANGE);
    CHECK(berth_range_parse("10.0.0.9-fd00::", &found) == BERTH_STATUS_BAD_FAMILY);
    CHECK(berth_range_parse("10.0.0.9-", &found) == BERTH_STATUS_BAD_ARGUMENT);
    struct berth_prefix length;
    const char *wrong[] = {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/8 ",
                           "10.0.0.0/99999999999999999999", "fd00::/129", "fe80::%1/64", "/8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(berth_prefix_parse(wrong[i], &length) == BERTH_STATUS_BAD_ARGUMENT);
}

static void test_sockaddr(void)
{
    const char *texts[] = {"10.0.0.1", "fd00::1"};
    for (size_t i = 0; i < 2; i++) {
        struct berth_ip before = ip(texts[i]), after;
        struct sockaddr_storage address;
        socklen_t length = berth_ip_to_sockaddr(&before, 443, &address);
        CHECK(length == (i == 0 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)));
        CHECK(((struct sockaddr_in *)&address)->sin_port == htons(443));
        CHECK(berth_ip_from_sockaddr((struct sockaddr *)&address, &after) == 0 && berth_ip_equal(&before, &after));
    }
    struct berth_ip found;
    struct sockaddr_in6 zoned = {.sin6_family = AF_INET6, .sin6_addr = ip("fe80::1").v6, .sin6_scope_id = 2};
    CHECK(berth_ip_from_sockaddr((struct sockaddr *)&zoned, &found) == BERTH_STATUS_BAD_ARGUMENT);
    struct sockaddr local = {.sa_family = AF_UNIX};
    CHECK(berth_ip_from_sockaddr(&local, &found) == BERTH_STATUS_BAD_FAMILY);
}

static void test_prefixes(struct berth_core *core)
{
    struct berth_prefix whole = prefix("10.0.0.77/24"), found;
    struct berth_ip end;
    CHECK(berth_prefix_first(core, &whole, &end) == 0 && is_ip(&end, "10.0.0.0"));
    CHECK(berth_prefix_last(core, &whole, &end) == 0 && is_ip(&end, "10.0.0.255"));
    CHECK(berth_prefix_mask(core, AF_INET, 20, &end) == 0 && is_ip(&end, "255.255.240.0"));
    CHECK(berth_prefix_mask(core, AF_INET6, 20, &end) == 0 && is_ip(&end, "ffff:f000::"));
    CHECK(berth_prefix_mask(core, AF_INET, 33, &end) == BERTH_STATUS_BAD_ARGUMENT);
    CHECK(berth_prefix_mask(core, AF_UNIX, 3, &end) == BERTH_STATUS_BAD_FAMILY);
    CHECK(berth_prefix_next(core, &whole, &found) == 1 && is_prefix(&found, "10.0.1.0/24"));
    struct berth_prefix last = prefix("255.255.255.0/24");
    CHECK(berth_prefix_next(core, &last, &found) == 0 && is_prefix(&found, "10.0.1.0/24"));
    CHECK(berth_prefix_part(core, &whole, 26, 3, &found) == 1 && is_prefix(&found, "10.0.0.192/26"));
    CHECK(berth_prefix_part(core, &whole, 26, 4, &found) == 0);
    CHECK(berth_prefix_part(core, &whole, 23, 0, &found) == BERTH_STATUS_BAD_ARGUMENT);
    struct berth_ip a = ip("fd00::1"), b = ip("fd00::8000:0"), four = ip("10.0.0.1");
    CHECK(berth_prefix_common(core, &a, &b, &found) == 0 && is_prefix(&found, "fd00::/96"));
    CHECK(berth_prefix_common(core, &a, &four, &found) == BERTH_STATUS_BAD_FAMILY);
}

static void test_copy(struct berth_core *core)
{
    struct berth_pool pool = pool_of(core, "10.0.0.0/12", NULL);
    struct berth_set set = set_of(core, "10.0.0.0/30");
    struct berth_ip first, second;
    for (uint32_t seed = 0; seed < 256; seed++)
        CHECK(berth_pool_allocate(&pool, BERTH_HASHED, seed * 4096, &first) == 1);
    struct berth_core *copy = berth_core_copy(core);
    CHECK(copy != NULL && berth_raw_state_bytes(copy) == berth_raw_state_bytes(core));
    size_t bytes = (size_t)berth_raw_state_bytes(core);
    CHECK(memcmp(berth_core_memory(copy, 0), berth_core_memory(core, 0), bytes) == 0);

    struct berth_pool twin = berth_pool_in(&pool, copy);
    CHECK(berth_pool_allocate(&pool, BERTH_ASCENDING, 0, &first) == 1);
    CHECK(berth_pool_test(&twin, &first) == 0 && berth_pool_test(&pool, &first) == 1);
    CHECK(berth_pool_allocate(&twin, BERTH_ASCENDING, 0, &second) == 1 && berth_ip_equal(&first, &second));
    struct berth_set same = berth_set_in(&set, copy), other;
    CHECK(berth_set_count(&same) == 1);
    CHECK(berth_set_union(&set, &same, &other) == BERTH_STATUS_BAD_HANDLE);
    berth_core_close(core);
    CHECK(berth_pool_release(&twin, &first) == BERTH_RELEASED);
    berth_core_close(copy);
}

static void test_many_instances(void)
{
    enum { COUNT = 8 }; /* valgrind has room for 15 */
    struct berth_core *cores[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        cores[i] = open_core();
        struct berth_pool pool = pool_of(cores[i], "fd00::/112", NULL);
        CHECK(pool.handle == pool_of(cores[i], "10.0.0.0/24", NULL).handle - 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(berth_raw_live_objects(cores[i]) == 2);
        berth_core_close(cores[i]);
    }
    berth_core_close(NULL);
}

static void test_no_room(void)
{
    struct rlimit before, now;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    now = before;
    now.rlim_cur = 1 << 20;
    CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    errno = 0;
    struct berth_core *core = berth_core_open();
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(core == NULL && errno == ENOMEM);
}

int main(void)
{
    test_status();
    test_ip_text();
    test_range_text();
    test_sockaddr();
    struct berth_core *core = open_core();
    CHECK(strlen(berth_core_sha256()) == 64);
    CHECK(berth_raw_abi_version(core) == (BERTH_ABI_MAJOR << 16 | BERTH_ABI_MINOR));
    test_prefixes(core);
    test_copy(core);
    test_many_instances();
    test_no_room();
    puts("core: passed");
    return 0;
}
