/* Writes text into fixed buffers, and parses seconds. */
#ifndef BERTH_TEXT_H
#define BERTH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer that is filled from the front. A text that does not fit is left out as a whole, and `full` is set. */
struct text {
    char *start;
    size_t length, capacity;
    bool full;
};

void text_add_bytes(struct text *text, const char *bytes, size_t length);
void text_add(struct text *text, const char *string);
void text_add_number(struct text *text, uint64_t number);

/*
 * Adds `string` for a line of text (text_add_plain) or for the inside of a JSON string (text_add_json). Bytes that
 * are not printable ASCII appear as \xNN; a string longer than TEXT_QUOTE_LIMIT bytes is truncated and followed by
 * "...".
 */
void text_add_plain(struct text *text, const char *string);
void text_add_json(struct text *text, const char *string);

/*
 * Parses seconds such as 20 or 0.25 into milliseconds, rounding down; at most TEXT_SECONDS_LIMIT.
 * False for anything else (sign, blank, exponent, empty).
 */
bool text_parse_seconds(const char *string, int64_t *milliseconds);

#endif
