/* Replays vectors (test/vectors/core/README.md), each on an instance of its own: conformance FILE... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth_core.h"

/* Writes a line's result, and as much output as the line has, behind its first three columns. */
static void play(struct berth_core *core, char *columns[5], char *found)
{
    found += sprintf(found, "%s %s %s ", columns[0], columns[1], columns[2]);
    if (strcmp(columns[0], "state") == 0) {
        int32_t bytes = berth_raw_state_bytes(core);
        const uint8_t *memory = berth_core_memory(core, 0);
        uint64_t hash = 0xcbf29ce484222325;
        for (int32_t i = 0; i < bytes; i++)
            hash = (hash ^ memory[i]) * 0x100000001b3;
        sprintf(found, "%" PRId32 " %016" PRIx64, bytes, hash);
        return;
    }
    size_t length = columns[2][0] == '-' ? 0 : strlen(columns[2]) / 2;
    int32_t args[8] = {0};
    char *next = columns[1];
    for (int i = 0; i < 8 && *next != '\0'; i++, next += strcspn(next, ","), next += *next == ',')
        args[i] = (int32_t)strtol(next, NULL, 10);
    if (length > 0) {
        uint8_t *input = berth_core_memory(core, (uint32_t)berth_raw_exchange(core, (int32_t)length));
        for (size_t i = 0; i < length; i++)
            sscanf(columns[2] + 2 * i, "%2hhx", &input[i]);
    }
    found += sprintf(found, "%" PRId32 " ", berth_raw_call(core, columns[0], args));
    length = columns[4][0] == '-' ? 0 : strlen(columns[4]) / 2;
    strcpy(found, "-");
    for (size_t i = 0; i < length; i++)
        sprintf(found + 2 * i, "%02x", berth_raw_output(core)[i]);
}

static void replay(const char *file)
{
    static char line[1 << 20], words[1 << 20], found[1 << 20];
    struct berth_core *core = berth_core_open();
    FILE *stream = fopen(file, "r");
    int steps = -1; /* the last line is none */
    for (int number = 1; stream != NULL && fgets(line, sizeof line, stream) != NULL; number++) {
        char *columns[5];
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        columns[0] = strtok(strcpy(words, line), " ");
        for (int i = 1; i < 5; i++)
            columns[i] = strtok(NULL, " ");
        play(core, columns, found);
        if (strcmp(line, found) != 0) {
            fprintf(stderr, "%s:%d: %s\n", file, number, found);
            exit(1);
        }
        steps++;
    }
    printf("%s: %d steps, %s\n", file, steps, found);
    fclose(stream);
    berth_core_close(core);
}

int main(int count, char *files[])
{
    for (int i = 1; i < count; i++)
        replay(files[i]);
    return 0;
}
