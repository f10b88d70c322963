/*
 * Times the library on the pools that a folder describes (shapes.json), a JSON line for each figure: nanoseconds for taking an
 * address and giving it back. Every form leaves the pool as it was, save the place of round robin.
 * Usage: bench FOLDER
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "berth_core.h"

enum { SAMPLES = 9 };
static const double WARM_UP_NS = 2e8;
static const double SAMPLE_NS = 3e7;

struct subject {
    struct berth_core *core;
    struct berth_pool pool;
    size_t batch;
    uint8_t *packed;
};

/* A form does something `times` times; what it gives depends on all of them, so that nothing is optimised away. */
typedef uint64_t form_fn(const struct subject *subject, size_t times);

static volatile uint64_t sink;

static void require(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static uint64_t call(const struct subject *subject, size_t times)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < times; i++)
        sum += (uint64_t)berth_raw_live_objects(subject->core);
    return sum;
}

static uint64_t one(const struct subject *subject, size_t times)
{
    uint64_t sum = 0;
    struct berth_ip ip;
    for (size_t i = 0; i < times; i++) {
        require(berth_pool_allocate(&subject->pool, BERTH_ROUND_ROBIN, 0, &ip) == 1, "none free");
        sum += ip.bytes[3];
        require(berth_pool_release(&subject->pool, &ip) == BERTH_RELEASED, "not released");
    }
    return sum;
}

static uint64_t raw(const struct subject *subject, size_t times)
{
    uint64_t sum = 0;
    struct berth_core *core = subject->core;
    int32_t pool = subject->pool.handle;
    for (size_t i = 0; i < times; i++) {
        sum += (uint64_t)berth_raw_pool_allocate_many(core, pool, BERTH_ROUND_ROBIN, 0, 1);
        sum += (uint64_t)berth_raw_pool_release(core, pool);
    }
    require(sum == 2 * times, "not taken or not released");
    return sum;
}

static uint64_t ordinal(const struct subject *subject, size_t times)
{
    uint64_t sum = 0;
    struct berth_core *core = subject->core;
    int32_t pool = subject->pool.handle;
    for (size_t i = 0; i < times; i++) {
        int32_t taken = berth_raw_pool_allocate(core, pool, BERTH_ROUND_ROBIN, 0);
        require(berth_raw_pool_release_at(core, pool, (uint32_t)taken) == 1, "not released");
        sum += (uint64_t)taken;
    }
    return sum;
}

static uint64_t batch(const struct subject *subject, size_t times)
{
    uint64_t sum = 0;
    int count = (int)subject->batch;
    for (size_t i = 0; i < times; i += subject->batch) {
        int taken = berth_pool_allocate_many(&subject->pool, BERTH_ROUND_ROBIN, 0, subject->packed, subject->batch);
        int released = berth_pool_release_many(&subject->pool, subject->packed, subject->batch);
        require(taken == count && released == count, "a batch that is not whole");
        sum += subject->packed[3];
    }
    return sum;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_ns(form_fn *form, const struct subject *subject, size_t times)
{
    double start = now_ns();
    sink += form(subject, times);
    return now_ns() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *shape, const char *name, form_fn *form, const struct subject *subject)
{
    size_t times = subject->batch;
    double best_ns = INFINITY; /* of one time, while warming up: says how many make a sample */
    for (double spent_ns = 0; spent_ns < WARM_UP_NS;) {
        double last_ns = time_ns(form, subject, times);
        spent_ns += last_ns;
        best_ns = fmin(best_ns, last_ns / (double)times);
        if (last_ns < SAMPLE_NS / 4)
            times *= 2;
    }
    times = subject->batch * (size_t)ceil(1.1 * SAMPLE_NS / best_ns / (double)subject->batch);
    double samples[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = time_ns(form, subject, times) / (double)times;
    qsort(samples, SAMPLES, sizeof *samples, compare);
    json_t *line = json_pack("{s:s, s:s, s:s, s:f}", "runtime", "c", "shape", shape, "form", name, "ns",
                             samples[SAMPLES / 2]);
    json_dumpf(line, stdout, JSON_REAL_PRECISION(4));
    putchar('\n');
    json_decref(line);
}

static void load_snapshot(const struct berth_pool *pool, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    require(file != NULL, path);
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(length);
    require(bytes != NULL && fread(bytes, 1, length, file) == length, path);
    fclose(file);
    require(berth_pool_load(pool, bytes, length) == BERTH_LOADED, path);
    free(bytes);
}

static struct berth_pool create_pool(struct berth_core *core, json_t *ends)
{
    size_t count = json_array_size(ends);
    struct berth_range *ranges = calloc(count, sizeof *ranges);
    require(ranges != NULL, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const char *first, *last;
        require(json_unpack(json_array_get(ends, i), "[ss]", &first, &last) == 0, "a range is no pair");
        require(berth_ip_parse(first, &ranges[i].first) == 0 && berth_ip_parse(last, &ranges[i].last) == 0, first);
    }
    struct berth_pool pool;
    struct berth_shape shape = {.ranges = ranges, .range_count = count};
    require(berth_pool_create(core, &shape, &pool) == 0, "no pool");
    free(ranges);
    return pool;
}

static void measure_shape(const char *folder, json_t *json)
{
    const char *name, *snapshot;
    json_t *ends;
    json_int_t size;
    require(json_unpack(json, "{s:s, s:o, s:s, s:I}", "name", &name, "ranges", &ends, "snapshot", &snapshot, "batch",
                        &size) == 0,
            "a shape lacks something");
    struct subject subject = {.core = berth_core_open(), .batch = (size_t)size};
    subject.packed = malloc(subject.batch * sizeof(struct in6_addr));
    require(subject.core != NULL && subject.packed != NULL, "out of memory");
    subject.pool = create_pool(subject.core, ends);
    load_snapshot(&subject.pool, folder, snapshot);
    measure(name, "one", one, &subject);
    measure(name, "raw", raw, &subject);
    measure(name, "ordinal", ordinal, &subject);
    measure(name, "batch", batch, &subject);
    free(subject.packed);
    berth_core_close(subject.core);
}

int main(int argc, char **argv)
{
    require(argc == 2, "usage: bench FOLDER");
    char path[4096];
    snprintf(path, sizeof path, "%s/shapes.json", argv[1]);
    json_error_t error;
    json_t *shapes = json_load_file(path, 0, &error);
    require(shapes != NULL, error.text);

    printf("{\"runtime\": \"c\", \"shape\": \"\", \"form\": \"version\", \"text\": \"gcc %s, wasm2c %s\"}\n", __VERSION__,
           WASM2C_VERSION);
    struct subject subject = {.core = berth_core_open(), .batch = 1};
    require(subject.core != NULL, "out of memory");
    measure("", "call", call, &subject);
    berth_core_close(subject.core);
    size_t index;
    json_t *shape;
    json_array_foreach(shapes, index, shape)
        measure_shape(argv[1], shape);
    json_decref(shapes);
    return 0;
}
