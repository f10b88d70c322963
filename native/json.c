#include "json.h"
#include "shim-limits.h"

#include <stdint.h>
#include <string.h>

struct cursor {
    const unsigned char *at, *end;
};

/* State of the scanner: bit n of `objects` is set if nesting level n + 1 is an object, not an array. */
struct scan {
    struct cursor cursor;
    uint64_t objects;
    unsigned depth;
    struct json_member *members;
    size_t count;
    struct json_member *wanted; /* the member whose value comes next, when it is one that the caller asked for */
};

static int peek(const struct cursor *c) {
    return c->at < c->end ? *c->at : -1;
}

static bool take(struct cursor *c, char wanted) {
    if (peek(c) != wanted) return false;
    c->at++;
    return true;
}

static void skip_blanks(struct cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

static bool skip_digits(struct cursor *c) {
    const unsigned char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
    return c->at > start;
}

static bool skip_number(struct cursor *c) {
    take(c, '-');
    if (!take(c, '0') && !skip_digits(c)) return false;
    if (take(c, '.') && !skip_digits(c)) return false;
    if (take(c, 'e') || take(c, 'E')) {
        if (!take(c, '+')) take(c, '-');
        return skip_digits(c);
    }
    return true;
}

static bool skip_word(struct cursor *c, const char *word) {
    for (; *word != '\0'; word++)
        if (!take(c, *word)) return false;
    return true;
}

static int hex_digit(int byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

/*
 * Reads an escape after its backslash. Returns the character, 0x80 for any that is not ASCII, -1 for an invalid escape.
 */
static int read_escape(struct cursor *c) {
    static const char plain[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    int byte = peek(c);
    if (byte <= 0) return -1;
    c->at++;
    const char *found = strchr(plain, byte);
    if (found != NULL) return meaning[found - plain];
    if (byte != 'u') return -1;
    int value = 0;
    for (int digit = 0; digit < 4; digit++, c->at++) {
        int nibble = hex_digit(peek(c));
        if (nibble < 0) return -1;
        value = value << 4 | nibble;
    }
    return value < 0x80 ? value : 0x80;
}

/*
 * Skips one non-ASCII character: RFC 3629 §4, no overlong form, no surrogate, nothing above U+10FFFF.
 * C2-DF xx | E0 A0-BF xx | E1-EC,EE,EF xx xx | ED 80-9F xx | F0 90-BF xx xx | F1-F3 xx xx xx | F4 80-8F xx xx
 */
static bool skip_wide(struct cursor *c) {
    unsigned lead = *c->at;
    if (lead < 0xc2 || lead > 0xf4) return false;
    int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (c->end - c->at <= more) return false;
    unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (c->at[1] < low || c->at[1] > high) return false;
    for (int i = 2; i <= more; i++)
        if ((c->at[i] & 0xc0) != 0x80) return false;
    c->at += 1 + more;
    return true;
}

/* Reads a string from its opening quote. Sets *value and *length to the text between the quotes. */
static bool read_string(struct cursor *c, const char **value, size_t *length) {
    if (!take(c, '"')) return false;
    *value = (const char *)c->at;
    for (;;) {
        int byte = peek(c);
        if (byte < 0x20) return false; /* the end, or a control character */
        if (byte == '"') break;
        if (byte >= 0x80) {
            if (!skip_wide(c)) return false;
            continue;
        }
        c->at++;
        if (byte == '\\' && read_escape(c) < 0) return false;
    }
    *length = (size_t)((const char *)c->at - *value);
    c->at++;
    return true;
}

/* Returns whether a string that read_string has accepted spells `name`. */
static bool spells(const char *value, size_t length, const char *name) {
    struct cursor c = {(const unsigned char *)value, (const unsigned char *)value + length};
    for (; *name != '\0'; name++) {
        int byte = peek(&c);
        if (byte < 0) return false;
        c.at++;
        if (byte == '\\') byte = read_escape(&c);
        if (byte != *name) return false;
    }
    return c.at == c.end;
}

/* Reads a key and its colon. */
static bool read_key(struct scan *s) {
    const char *key;
    size_t length;
    skip_blanks(&s->cursor);
    if (!read_string(&s->cursor, &key, &length)) return false;
    skip_blanks(&s->cursor);
    if (!take(&s->cursor, ':')) return false;
    if (s->depth != 1) return true;
    for (size_t i = 0; i < s->count && s->wanted == NULL; i++)
        if (spells(key, length, s->members[i].name)) s->wanted = &s->members[i];
    return true;
}

static void note(struct scan *s, enum json_kind kind, const char *value, size_t length) {
    if (s->wanted == NULL) return;
    s->wanted->kind = kind;
    s->wanted->value = value;
    s->wanted->length = length;
    s->wanted->count++;
    s->wanted = NULL;
}

static bool read_scalar(struct scan *s) {
    struct cursor *c = &s->cursor;
    const char *value = (const char *)c->at;
    size_t length;
    switch (peek(c)) {
    case '"':
        if (!read_string(c, &value, &length)) return false;
        note(s, JSON_STRING, value, length);
        return true;
    case 't':
        note(s, JSON_OTHER, value, 4);
        return skip_word(c, "true");
    case 'f':
        note(s, JSON_OTHER, value, 5);
        return skip_word(c, "false");
    case 'n':
        note(s, JSON_OTHER, value, 4);
        return skip_word(c, "null");
    default:
        if (!skip_number(c)) return false;
        note(s, JSON_NUMBER, value, (size_t)((const char *)c->at - value));
        return true;
    }
}

/* Reads an opening bracket. Sets *empty if it is closed at once; otherwise a value follows. */
static bool open_container(struct scan *s, bool *empty) {
    if (s->depth == JSON_DEPTH_LIMIT) return false;
    bool object = *s->cursor.at == '{';
    note(s, JSON_OTHER, (const char *)s->cursor.at, 1);
    s->cursor.at++;
    skip_blanks(&s->cursor);
    *empty = take(&s->cursor, object ? '}' : ']');
    if (*empty) return true;
    uint64_t bit = (uint64_t)1 << s->depth++;
    s->objects = object ? s->objects | bit : s->objects & ~bit;
    return !object || read_key(s);
}

/*
 * Closes the containers that end after a value. Returns false for invalid text; depth is 0 once the whole value has
 * ended.
 */
static bool close_containers(struct scan *s) {
    while (s->depth > 0) {
        bool object = s->objects >> (s->depth - 1) & 1;
        skip_blanks(&s->cursor);
        if (take(&s->cursor, ',')) return !object || read_key(s);
        if (!take(&s->cursor, object ? '}' : ']')) return false;
        s->depth--;
    }
    return true;
}

bool json_read_object(const char *text, size_t length, struct json_member *members, size_t count) {
    const unsigned char *start = (const unsigned char *)text;
    struct scan s = {.cursor = {start, start + length}, .members = members, .count = count};
    for (size_t i = 0; i < count; i++) members[i].kind = JSON_ABSENT, members[i].count = 0;
    skip_blanks(&s.cursor);
    if (peek(&s.cursor) != '{') return false;
    do {
        skip_blanks(&s.cursor);
        int byte = peek(&s.cursor);
        bool ended = true;
        if (byte == '{' || byte == '[') {
            if (!open_container(&s, &ended)) return false;
        } else if (!read_scalar(&s)) {
            return false;
        }
        if (ended && !close_containers(&s)) return false;
    } while (s.depth > 0);
    skip_blanks(&s.cursor);
    return s.cursor.at == s.cursor.end;
}
