/*
 * Scans many texts with the shim's JSON scanner. stdin: texts, each after its length (32 bits, little-endian).
 * stdout: a line for each, "0", or "1" and the kind, count and value of the top-level member "code" in hexadecimal.
 * Built with sanitizers by shim-json.test.ts: a read outside of a text ends it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../native/json.h"

int main(void) {
    uint32_t length;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        char *text = malloc(length); /* exactly as long as the text */
        if (fread(text, 1, length, stdin) != length) return 1;
        struct json_member code = {.name = "code"};
        if (json_read_object(text, length, &code, 1)) {
            printf("1 %d %u ", (int)code.kind, code.count);
            if (code.kind == JSON_STRING || code.kind == JSON_NUMBER)
                for (size_t i = 0; i < code.length; i++) printf("%02x", (unsigned char)code.value[i]);
            printf("\n");
        } else {
            printf("0\n");
        }
        free(text);
    }
    return 0;
}
