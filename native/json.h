/* Validates JSON and extracts top-level members without allocation or recursion. */
#ifndef BERTH_JSON_H
#define BERTH_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_ABSENT, JSON_STRING, JSON_NUMBER, JSON_OTHER };

/*
 * A top-level member to look for: the caller sets `name` (ASCII), the scanner the rest. `value` points into the text:
 * a number's digits, or a string still escaped and without its quotes. If a name occurs several times, the last one
 * counts, as in every JSON decoder; `count` is the number of occurrences.
 */
struct json_member {
    const char *name;
    enum json_kind kind;
    unsigned count;
    const char *value;
    size_t length;
};

/*
 * Returns whether text[0, length) is exactly one JSON object (RFC 8259, blanks around it allowed), well-formed UTF-8
 * (RFC 3629) and at most JSON_DEPTH_LIMIT deep. Fills members[0, count), which are meaningful only if the result is
 * true.
 */
bool json_read_object(const char *text, size_t length, struct json_member *members, size_t count);

#endif
