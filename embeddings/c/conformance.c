/* Replays vectors (test/vectors/core/README.md), each on an instance of its own: conformance FILE... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth_core.h"

/* Writes a line's result, and as much output as the line has. */
static void play(struct berth_core *core, const char *call, char *arguments, const char *input, size_t output, char *found)
{
    int32_t args[8] = {0};
    if (strcmp(call, "state") == 0) {
        int32_t bytes = berth_raw_state_bytes(core);
        uint64_t hash = 0xcbf29ce484222325;
        for (int32_t i = 0; i < bytes; i++)
            hash = (hash ^ berth_core_memory(core, 0)[i]) * 0x100000001b3;
        sprintf(found, "%" PRId32 " %016" PRIx64, bytes, hash);
        return;
    }
    for (int i = 0; i < 8 && *arguments != '\0'; i++, arguments += *arguments == ',')
        args[i] = (int32_t)strtol(*arguments == '-' && arguments[1] == '\0' ? "0" : arguments, &arguments, 10);
    if (*input != '-') {
        uint8_t *bytes = berth_core_memory(core, (uint32_t)berth_raw_exchange(core, (int32_t)strlen(input) / 2));
        for (; *input != '\0'; input += 2)
            sscanf(input, "%2hhx", bytes++);
    }
    found += sprintf(found, "%" PRId32 " %s", berth_raw_call(core, call, args), output == 0 ? "-" : "");
    for (size_t i = 0; i < output; i++)
        found += sprintf(found, "%02x", berth_raw_output(core)[i]);
}

static void replay(const char *file)
{
    static char line[1 << 18], words[1 << 18], found[1 << 18];
    struct berth_core *core = berth_core_open();
    FILE *stream = fopen(file, "r");
    int steps = -1; /* the last line is none */
    for (int number = 1; stream != NULL && fgets(line, sizeof line, stream) != NULL; number++) {
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        char *call = strtok(strcpy(words, line), " "), *arguments = strtok(NULL, " "), *input = strtok(NULL, " ");
        const char *wanted = strtok(NULL, " ") == NULL ? "" : strtok(NULL, " ");
        int start = sprintf(found, "%s %s %s ", call, arguments, input);
        play(core, call, arguments, input, *wanted == '-' ? 0 : strlen(wanted) / 2, found + start);
        if (strcmp(line, found) != 0) {
            fprintf(stderr, "%s:%d: %s\n", file, number, found);
            exit(1);
        }
        steps++;
    }
    printf("%s: %d steps, %s\n", file, steps, found);
    berth_core_close(core);
}

int main(int count, char *files[])
{
    for (int i = 1; i < count; i++)
        replay(files[i]);
}
