#include "shim-limits.h"
#include "reply.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "text.h"
#include "version.h"

/* Room for three values at TEXT_QUOTE_LIMIT with every byte escaped, and the words around them. */
#define REPLY_LIMIT (64 * 1024)

static const char *config;
static size_t config_length;
static bool for_netavark;

void reply_as_netavark(void) {
    for_netavark = true;
}

bool is_for_netavark(void) {
    return for_netavark;
}

static bool is_blank(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r' && bytes[i] != '\n') return false;
    return true;
}

struct version {
    const char *text;
    size_t length;
};

void reply_to(const char *bytes, size_t length) {
    config = bytes;
    config_length = length;
}

/*
 * The cniVersion to answer in. An empty one, or an empty configuration, counts as none. Returns false if the
 * configuration is not an object, or its version cannot be repeated unchanged.
 */
static bool read_version(struct version *version) {
    struct json_member member = {.name = "cniVersion"};
    *version = (struct version){"1.1.0", 5};
    if (is_blank(config, config_length)) return true;
    if (!json_read_object(config, config_length, &member, 1)) return false;
    if (member.kind == JSON_ABSENT || (member.kind == JSON_STRING && member.length == 0)) return true;
    if (member.kind != JSON_STRING || member.length > VERSION_LIMIT) return false;
    if (memchr(member.value, '\\', member.length) != NULL) return false;
    *version = (struct version){member.value, member.length};
    return true;
}

void fail(enum code code, ...) {
    static char reply[REPLY_LIMIT];
    static const char closing[] = "\"}\n";
    struct text text = {.start = reply, .capacity = sizeof reply - sizeof closing};
    struct version version;
    if (for_netavark) {
        text_add(&text, "{\"error\":\"");
    } else {
        read_version(&version);
        text_add(&text, "{\"cniVersion\":\"");
        text_add_bytes(&text, version.text, version.length);
        text_add(&text, "\",\"code\":");
        text_add_number(&text, code);
        text_add(&text, ",\"msg\":\"");
    }
    va_list pieces;
    va_start(pieces, code);
    for (const char *piece; (piece = va_arg(pieces, const char *)) != NULL;) text_add_json(&text, piece);
    va_end(pieces);
    text.capacity = sizeof reply;
    text_add(&text, closing);
    reply_body(text.start, text.length, 1);
}

void reply_versions(void) {
    static char reply[256];
    struct text text = {.start = reply, .capacity = sizeof reply};
    struct version version;
    if (!read_version(&version))
        fail(DECODE, "The configuration on stdin is not a JSON object with a cniVersion such as \"1.1.0\"", NULL);
    text_add(&text, "{\"cniVersion\":\"");
    text_add_bytes(&text, version.text, version.length);
    text_add(&text, "\",\"supportedVersions\":[\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n");
    reply_body(text.start, text.length, 0);
}

void reply_driver_info(void) {
    static const char info[] = "{\"version\":\"" BERTH_VERSION "\",\"api_version\":\"1.0.0\"}\n";
    reply_body(info, sizeof info - 1, 0);
}

void reply_error(const char *body, size_t length) {
    struct json_member message = {.name = "msg"};
    if (!for_netavark || !json_read_object(body, length, &message, 1)) reply_body(body, length, 1);
    io_write_all(STDOUT_FILENO, "{\"error\":\"", 10);
    io_write_all(STDOUT_FILENO, message.value, message.length);
    reply_body("\"}\n", 3, 1);
}

void reply_body(const char *body, size_t length, int exit_code) {
    _exit(io_write_all(STDOUT_FILENO, body, length) == 0 ? exit_code : 1);
}

void print_line(const char *piece, ...) {
    static char line[REPLY_LIMIT];
    struct text text = {.start = line, .capacity = sizeof line - 1};
    va_list pieces;
    va_start(pieces, piece);
    for (; piece != NULL; piece = va_arg(pieces, const char *)) text_add_plain(&text, piece);
    va_end(pieces);
    text.capacity = sizeof line;
    text_add(&text, "\n");
    io_write_all(STDERR_FILENO, text.start, text.length);
}

/*
 * The installers recognize Berth's own files, of every version, by the words "CNI plugins berth, coordinator and
 * ifacer".
 */
void print_about(void) {
    print_line("Berth " BERTH_VERSION " (build " BERTH_BUILD "): pod network addresses and interfaces, CNI plugins berth, coordinator and ifacer", NULL);
    print_line("CNI protocol versions supported: 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0", NULL);
}
