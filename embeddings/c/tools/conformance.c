/*
 * Plays the vectors of a folder (test/vectors/core/README.md), each on a fresh instance.
 * Usage: conformance FOLDER
 */
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth_core.h"
#include "sha256.h"

/*
 * --- The exports by name -------------------------------------------------------------------------------------------
 */

typedef int32_t call_fn(struct berth_core *core, const uint32_t *args);

#define ARGS_0
#define ARGS_1 , args[0]
#define ARGS_2 ARGS_1, args[1]
#define ARGS_3 ARGS_2, args[2]
#define ARGS_4 ARGS_3, args[3]
#define DEFINE_CALL(name, arity)                                                \
    static int32_t call_##name(struct berth_core *core, const uint32_t *args) \
    {                                                                           \
        (void)args;                                                             \
        return berth_raw_##name(core ARGS_##arity);                             \
    }
BERTH_RAW_EXPORTS(DEFINE_CALL)

#define ROW(name, arity) {#name, arity, call_##name},
static const struct {
    const char *name;
    size_t arity;
    call_fn *call;
} exports[] = {BERTH_RAW_EXPORTS(ROW)};

/*
 * --- Vectors -------------------------------------------------------------------------------------------------------
 */

struct step {
    const char *call;
    json_t *args;
    const char *input; /* hexadecimal, as the output; NULL when there is none */
    const char *output;
    int32_t result;
};

struct vector {
    const char *name;
    json_t *steps;
    json_int_t bytes;
    const char *fnv1a64;
};

static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static struct step read_step(const struct vector *vector, json_t *json)
{
    struct step step = {0};
    json_int_t result;
    json_error_t error;
    if (json_unpack_ex(json, &error, 0, "{s:s, s:o, s?s, s:I, s?s}", "call", &step.call, "args", &step.args, "input",
                       &step.input, "result", &result, "output", &step.output) != 0)
        fail("%s: %s", vector->name, error.text);
    step.result = (int32_t)result;
    return step;
}

/* `sets: step 7, set_create(4, 2)` */
static const char *place(const struct vector *vector, size_t index, const struct step *step)
{
    static char text[200];
    int length = snprintf(text, sizeof text, "%s: step %zu, %s(", vector->name, index, step->call);
    size_t i;
    json_t *arg;
    json_array_foreach(step->args, i, arg)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%" JSON_INTEGER_FORMAT, i == 0 ? "" : ", ",
                           json_integer_value(arg));
    snprintf(text + length, sizeof text - (size_t)length, ")");
    return text;
}

static int digit_of(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

static uint8_t *exchange(struct berth_core *core, size_t bytes)
{
    int32_t address = berth_raw_exchange(core, (int32_t)bytes);
    if (address < 0)
        fail("exchange(%zu): %s", bytes, berth_status_name(address));
    return berth_core_memory(core, (uint32_t)address);
}

static void write_input(struct berth_core *core, const char *hex)
{
    size_t length = strlen(hex) / 2;
    uint8_t *buffer = exchange(core, length);
    for (size_t i = 0; i < length; i++)
        buffer[i] = (uint8_t)(digit_of(hex[2 * i]) << 4 | digit_of(hex[2 * i + 1]));
}

static char *to_hex(const uint8_t *bytes, size_t length)
{
    char *hex = malloc(2 * length + 1);
    if (hex == NULL)
        fail("Out of memory");
    hex[0] = '\0';
    for (size_t i = 0; i < length; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return hex;
}

static int32_t call(struct berth_core *core, const struct vector *vector, const struct step *step)
{
    uint32_t args[4] = {0};
    for (size_t i = 0; i < json_array_size(step->args) && i < 4; i++)
        args[i] = (uint32_t)json_integer_value(json_array_get(step->args, i));
    for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
        if (strcmp(exports[i].name, step->call) == 0 && exports[i].arity == json_array_size(step->args))
            return exports[i].call(core, args);
    fail("%s: no call %s of %zu arguments", vector->name, step->call, json_array_size(step->args));
    return 0;
}

static void play_step(struct berth_core *core, const struct vector *vector, size_t index, const struct step *step)
{
    if (step->input != NULL)
        write_input(core, step->input);
    int32_t result = call(core, vector, step);
    if (result != step->result)
        fail("%s: result %" PRId32 ", wanted %" PRId32, place(vector, index, step), result, step->result);
    if (step->output == NULL)
        return;
    char *output = to_hex(exchange(core, 0), strlen(step->output) / 2);
    if (strcmp(output, step->output) != 0)
        fail("%s: output %s, wanted %s", place(vector, index, step), output, step->output);
    free(output);
}

static void play(const struct vector *vector)
{
    struct berth_core *core = berth_core_open();
    if (core == NULL)
        fail("%s: no instance", vector->name);
    size_t index;
    json_t *json;
    json_array_foreach(vector->steps, index, json)
    {
        struct step step = read_step(vector, json);
        play_step(core, vector, index, &step);
    }

    int32_t bytes = berth_raw_state_bytes(core);
    if (bytes != vector->bytes)
        fail("%s: state: %" PRId32 " bytes, wanted %" JSON_INTEGER_FORMAT, vector->name, bytes, vector->bytes);
    const uint8_t *memory = berth_core_memory(core, 0);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int32_t i = 0; i < bytes; i++)
        hash = (hash ^ memory[i]) * UINT64_C(0x100000001b3);
    char fnv1a64[17];
    snprintf(fnv1a64, sizeof fnv1a64, "%016" PRIx64, hash);
    if (strcmp(fnv1a64, vector->fnv1a64) != 0)
        fail("%s: state: fnv1a64 %s, wanted %s", vector->name, fnv1a64, vector->fnv1a64);

    uint8_t digest[SHA256_BYTES];
    sha256(memory, (size_t)bytes, digest);
    char *hex = to_hex(digest, sizeof digest);
    printf("%s: %zu steps, %" PRId32 " bytes, sha256 %s\n", vector->name, json_array_size(vector->steps), bytes, hex);
    free(hex);
    berth_core_close(core);
}

/*
 * --- The folder ----------------------------------------------------------------------------------------------------
 */

static int is_vector(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void play_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    char stem[256];
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - 5), name);
    struct vector vector = {.name = stem};
    if (json == NULL || json_unpack_ex(json, &error, 0, "{s:o, s:{s:I, s:s}}", "steps", &vector.steps, "state", "bytes",
                                       &vector.bytes, "fnv1a64", &vector.fnv1a64) != 0)
        fail("%s: %s", stem, error.text);
    play(&vector);
    json_decref(json);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("Usage: conformance FOLDER");
    struct dirent **names;
    int count = scandir(argv[1], &names, is_vector, by_name);
    if (count <= 0)
        fail("No vectors in %s", argv[1]);
    for (int i = 0; i < count; i++) {
        play_file(argv[1], names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return 0;
}
