/*
 * Reads JSON without building anything: is this one valid object, and what are these members of it?
 * Called by shim.c for the configuration on stdin and for the agent's answers.
 * Effects: none; no allocation, no recursion.
 */
#ifndef BERTH_JSON_H
#define BERTH_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_ABSENT, JSON_STRING, JSON_NUMBER, JSON_OTHER };

/*
 * A top-level member to look for: the caller sets `name` (ASCII), the scanner the rest.
 * `value` points into the text: a number's digits, or a string still escaped and without its quotes.
 * Of a name that occurs several times the last counts, as in every JSON decoder; `count` tells.
 */
struct json_member {
    const char *name;
    enum json_kind kind;
    unsigned count;
    const char *value;
    size_t length;
};

/*
 * Whether text[0, length) is exactly one JSON object (RFC 8259, blanks around it allowed), well-formed UTF-8 (RFC 3629)
 * and at most JSON_DEPTH_LIMIT deep. Fills members[0, count); they mean something only when the answer is true.
 */
bool json_read_object(const char *text, size_t length, struct json_member *members, size_t count);

#endif
