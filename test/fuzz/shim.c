/*
 * The shim's parsers for libFuzzer: what native/json.h, http.h and text.h promise, for any input. The compiler is told
 * which of the functions below is the TARGET.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../native/http.h"
#include "../../native/json.h"
#include "../../native/shim-limits.h"
#include "../../native/text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void require(bool promise) {
    if (!promise) abort();
}

/* A copy with nothing behind it, so that the sanitizer sees a byte too many. */
static char *exact_copy(const uint8_t *bytes, size_t length) {
    char *copy = malloc(length);
    if (length > 0) memcpy(copy, bytes, length);
    return copy;
}

/* Members lie within the text, and no object ends before its last bracket. */
void json(const uint8_t *bytes, size_t length) {
    struct json_member members[] = {{.name = "cniVersion"}, {.name = "code"}, {.name = "msg"}};
    char *text = exact_copy(bytes, length);
    if (json_read_object(text, length, members, COUNT(members))) {
        for (size_t i = 0; i < COUNT(members); i++) {
            const struct json_member *member = &members[i];
            require((member->kind == JSON_ABSENT) == (member->count == 0));
            if (member->count == 0) continue;
            require(member->value > text && member->value + member->length < text + length);
            if (member->kind == JSON_STRING) require(member->value[-1] == '"' && member->value[member->length] == '"');
        }
        while (text[length - 1] != '}') length--;
        require(!json_read_object(text, length - 1, members, 0));
    }
    free(text);
}

/* An accepted answer is within the limits, and its notice within the head. */
void head(const uint8_t *bytes, size_t length) {
    struct http_answer answer = {0};
    char *head = exact_copy(bytes, length);
    if (http_parse_head(head, length, &answer) == NULL) {
        require(answer.status >= 0 && answer.status < 1000 && answer.body_length <= HTTP_BODY_LIMIT);
        if (answer.notice != NULL) require(answer.notice > head && answer.notice + strlen(answer.notice) < head + length);
    }
    free(head);
}

/* Whatever string is shown in whatever room (the first two bytes), JSON stays JSON, and a line one line. */
void text(const uint8_t *bytes, size_t length) {
    if (length < 2) return;
    size_t capacity = (size_t)bytes[0] << 8 | bytes[1];
    char *string = malloc(length - 1), *room = malloc(capacity + 8);
    memcpy(string, bytes + 2, length - 2);
    string[length - 2] = '\0';
    int64_t milliseconds;
    if (text_parse_seconds(string, &milliseconds)) require(milliseconds >= 0 && milliseconds <= TEXT_SECONDS_LIMIT * 1000);
    struct text shown = {.start = room, .capacity = capacity + 6};
    text_add(&shown, "{\"m\":\"");
    text_add_json(&shown, string);
    require(shown.length <= shown.capacity);
    memcpy(room + shown.length, "\"}", 2);
    require(json_read_object(room, shown.length + 2, NULL, 0));
    shown = (struct text){.start = room, .capacity = capacity};
    text_add_plain(&shown, string);
    for (size_t i = 0; i < shown.length; i++) require(room[i] >= 0x20 && room[i] < 0x7f);
    free(string);
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    TARGET(bytes, length);
    return 0;
}
