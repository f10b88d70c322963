#include "shim-limits.h"
#include "text.h"

#include <string.h>

void text_add_bytes(struct text *text, const char *bytes, size_t length) {
    if (length > text->capacity - text->length) {
        text->full = true;
        return;
    }
    memcpy(text->start + text->length, bytes, length);
    text->length += length;
}

void text_add(struct text *text, const char *string) {
    text_add_bytes(text, string, strlen(string));
}

void text_add_number(struct text *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

static void add_visible(struct text *text, const char *string, const char *backslash, const char *quote) {
    static const char hex[] = "0123456789abcdef";
    size_t length = strnlen(string, TEXT_QUOTE_LIMIT + 1);
    bool cut = length > TEXT_QUOTE_LIMIT;
    if (cut) length = TEXT_QUOTE_LIMIT;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)string[i];
        if (byte == '\\') {
            text_add(text, backslash);
        } else if (byte == '"') {
            text_add(text, quote);
        } else if (byte >= 0x20 && byte < 0x7f) {
            text_add_bytes(text, string + i, 1);
        } else {
            text_add(text, backslash);
            text_add_bytes(text, (char[]){'x', hex[byte >> 4], hex[byte & 15]}, 3);
        }
    }
    if (cut) text_add(text, "...");
}

void text_add_plain(struct text *text, const char *string) {
    add_visible(text, string, "\\", "\"");
}

void text_add_json(struct text *text, const char *string) {
    add_visible(text, string, "\\\\", "\\\"");
}

bool text_parse_seconds(const char *string, int64_t *milliseconds) {
    const char *at = string;
    int64_t whole = 0, fraction = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if ((whole = whole * 10 + (*at - '0')) > TEXT_SECONDS_LIMIT) return false;
    if (at == string) return false;
    if (*at == '.') {
        const char *start = ++at;
        for (int64_t unit = 100; *at >= '0' && *at <= '9'; at++, unit /= 10) fraction += (*at - '0') * unit;
        if (at == start) return false;
    }
    *milliseconds = whole * 1000 + fraction;
    return *at == '\0' && *milliseconds <= TEXT_SECONDS_LIMIT * 1000;
}
