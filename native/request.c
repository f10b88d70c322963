#include "shim-limits.h"
#include "request.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"
#include "reply.h"
#include "text.h"

#define DEFAULT_SOCKET "/run/berth/agent.sock"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/*
 * Whether a request is refused if a variable cannot be forwarded; otherwise it omits the header, as a DEL does. A NAME
 * is encoded.
 */
enum need { NEEDED, NAME, NONE };

static const struct {
    const char *variable, *header;
    enum need need;
} FORWARDED[] = {
    {"CNI_COMMAND", "CNI-Command", NEEDED},
    {"CNI_CONTAINERID", "CNI-ContainerID", NEEDED},
    {"CNI_NETNS", "CNI-Netns", NEEDED},
    {"CNI_IFNAME", "CNI-IfName", NAME},
    {"CNI_ARGS", "CNI-Args", NEEDED},
    {"CNI_PATH", "CNI-Path", NEEDED},
    {"CNI_NETNS_OVERRIDE", "CNI-Netns-Override", NEEDED},
    {"TRACEPARENT", "Traceparent", NONE},
};

/* CNI_COMMAND and CNI_NETNS of a netavark driver, from its arguments; NULL for the call of a CNI runtime. */
static const char *given_command, *given_netns;

/* Longest name of an interface that is encoded: a longer one is as good as none. Bytes. */
#define ENCODED_NAME_LIMIT 255

/* Room for all variables at their limit, their names, and the fixed lines. */
#define HEAD_LIMIT (COUNT(FORWARDED) * (VARIABLE_LIMIT + 64) + 256)

/*
 *   bytes  ├──── unused ────┤── head ──┤── configuration ──┤ room ┤
 *                                      └ HEAD_LIMIT        └ one byte more than allowed, by which too much is noticed
 */
static char bytes[HEAD_LIMIT + STDIN_LIMIT + 1];
static char *const config = bytes + HEAD_LIMIT;
static size_t config_length;

const char *variable_or(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value == NULL || *value == '\0' ? otherwise : value;
}

void take_arguments(const char *command, const char *netns) {
    given_command = command;
    given_netns = netns;
}

/* The environment of a netavark driver says nothing of CNI. */
static const char *value_of(const char *variable, enum need need) {
    if (given_command == NULL || need == NONE) return getenv(variable);
    if (strcmp(variable, "CNI_COMMAND") == 0) return given_command;
    return strcmp(variable, "CNI_NETNS") == 0 ? given_netns : NULL;
}

int64_t milliseconds_of(const char *name, int64_t otherwise) {
    const char *value = variable_or(name, NULL);
    int64_t milliseconds = otherwise;
    if (value != NULL && !text_parse_seconds(value, &milliseconds))
        fail(ENVIRONMENT, "Variable ", name, " is \"", value, "\"; want seconds from 0 to 3600, such as 20 or 0.5", NULL);
    return milliseconds;
}

const char *socket_path(void) {
    const char *path = variable_or("BERTH_SOCKET", DEFAULT_SOCKET);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        fail(ENVIRONMENT, "Variable BERTH_SOCKET is \"", path, "\"; want a path of at most 107 bytes", NULL);
    return path;
}

void read_config(int64_t limit_ms, bool is_del) {
    int64_t deadline_ms = io_now_ms() + limit_ms;
    bool is_dropped = false;
    for (;;) {
        int error = io_wait(STDIN_FILENO, POLLIN, deadline_ms);
        ssize_t count = error == 0 ? read(STDIN_FILENO, config + config_length, STDIN_LIMIT + 1 - config_length) : -1;
        if (count == 0) break;
        if (count < 0) {
            if (error == 0) error = errno;
            if (error == EINTR || error == EAGAIN) continue;
            fail(INPUT_OUTPUT, "Cannot read the configuration on stdin to its end: ", strerror(error), NULL);
        }
        config_length += (size_t)count;
        if (config_length <= STDIN_LIMIT) continue;
        if (!is_del) fail(DECODE, "The configuration on stdin is larger than 1048576 bytes", NULL);
        is_dropped = true; /* no ADD was made with it */
        config_length = 0;
    }
    if (is_dropped) config_length = 0;
    reply_to(config, config_length);
}

/*
 * Returns why a header cannot carry the value unchanged, or NULL: HTTP allows only these bytes, and strips spaces at
 * both ends.
 */
static const char *find_fault(const char *value) {
    size_t length = strnlen(value, VARIABLE_LIMIT + 1);
    if (length > VARIABLE_LIMIT) return "is longer than 65536 bytes";
    for (size_t i = 0; i < length; i++)
        if (value[i] < 0x20 || value[i] > 0x7e) return "only printable ASCII can be forwarded";
    if (length > 0 && (value[0] == ' ' || value[length - 1] == ' ')) return "it must not begin or end with a space";
    return NULL;
}

__attribute__((noreturn)) static void refuse(const char *name, const char *value, const char *fault) {
    if (strlen(value) > VARIABLE_LIMIT) fail(ENVIRONMENT, "Variable ", name, " ", fault, NULL);
    fail(ENVIRONMENT, "Variable ", name, " is \"", value, "\"; ", fault, NULL);
}

/* The name of an interface in a header: other bytes than printable ASCII, and '%', as '%' and two digits. */
static const char *encode_name(const char *value) {
    static const char DIGITS[] = "0123456789ABCDEF";
    static char encoded[3 * ENCODED_NAME_LIMIT + 1];
    char *end = encoded;
    for (const unsigned char *byte = (const unsigned char *)value; *byte != '\0'; byte++) {
        bool is_plain = *byte > 0x20 && *byte < 0x7f && *byte != '%';
        *end++ = is_plain ? (char)*byte : '%';
        if (is_plain) continue;
        *end++ = DIGITS[*byte >> 4];
        *end++ = DIGITS[*byte & 15];
    }
    *end = '\0';
    return encoded;
}

static void add_variables(struct text *head, bool is_del) {
    for (size_t i = 0; i < COUNT(FORWARDED); i++) {
        const char *value = value_of(FORWARDED[i].variable, FORWARDED[i].need);
        if (value == NULL) continue;
        if (FORWARDED[i].need == NAME && strnlen(value, ENCODED_NAME_LIMIT + 1) <= ENCODED_NAME_LIMIT) value = encode_name(value);
        const char *fault = find_fault(value);
        if (fault != NULL) {
            if (is_del || FORWARDED[i].need == NONE) continue;
            refuse(FORWARDED[i].variable, value, fault);
        }
        text_add(head, FORWARDED[i].header);
        text_add(head, ": ");
        text_add(head, value);
        text_add(head, "\r\n");
    }
}

const char *build_request(const char *plugin, bool is_del, size_t *length) {
    static char space[HEAD_LIMIT];
    struct text head = {.start = space, .capacity = sizeof space};
    text_add(&head, "POST /v1/cni/");
    text_add(&head, plugin);
    text_add(&head, " HTTP/1.1\r\nHost: berth\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ");
    text_add_number(&head, config_length);
    text_add(&head, "\r\n");
    add_variables(&head, is_del);
    text_add(&head, "\r\n");
    *length = head.length + config_length;
    return memcpy(config - head.length, space, head.length);
}
