#define _GNU_SOURCE
#include "http.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "shim-limits.h"
#include "text.h"

/* Pauses between attempts to connect double from the first to the last. */
#define FIRST_PAUSE_MS 1
#define LAST_PAUSE_MS 50

static char received[HTTP_HEAD_LIMIT + HTTP_BODY_LIMIT];

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* One header line without its line end. */
struct header {
    char *name, *value;
    size_t name_length, value_length;
};

static bool split_header(char *line, char *end, struct header *header) {
    char *colon = memchr(line, ':', (size_t)(end - line));
    if (colon == NULL || colon == line) return false;
    for (char *at = line; at < colon; at++)
        if (*at <= ' ' || *at > '~') return false;
    char *value = colon + 1;
    while (value < end && is_blank(*value)) value++;
    while (end > value && is_blank(end[-1])) end--;
    *header = (struct header){line, value, (size_t)(colon - line), (size_t)(end - value)};
    return true;
}

static bool is_named(const struct header *header, const char *name) {
    return header->name_length == strlen(name) && strncasecmp(header->name, name, header->name_length) == 0;
}

static bool parse_length(const struct header *header, size_t *length) {
    *length = 0;
    for (size_t i = 0; i < header->value_length; i++) {
        if (!is_digit(header->value[i])) return false;
        *length = *length * 10 + (size_t)(header->value[i] - '0');
        if (*length > HTTP_BODY_LIMIT) return false;
    }
    return header->value_length > 0;
}

/* "HTTP/1.1 200 OK": the reason phrase is arbitrary and may be missing. */
static bool parse_status(const char *line, const char *end, int *status) {
    if (end - line < 12 || memcmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) || line[8] != ' ') return false;
    if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11])) return false;
    *status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    return end - line == 12 || line[12] == ' ';
}

const char *http_parse_head(char *head, size_t length, struct http_answer *answer) {
    char *line = head, *limit = head + length;
    bool has_length = false;
    for (;; line += 2) {
        char *end = memmem(line, (size_t)(limit - line), "\r\n", 2);
        if (end == NULL) return "sent incomplete headers";
        struct header header;
        if (line == head) {
            if (!parse_status(line, end, &answer->status)) return "did not answer in HTTP/1.1";
        } else if (end == line) {
            break;
        } else if (!split_header(line, end, &header)) {
            return "sent a malformed header";
        } else if (is_named(&header, "Transfer-Encoding")) {
            return "sent a chunked answer, which is not supported";
        } else if (is_named(&header, "Content-Length")) {
            if (has_length) return "sent two Content-Length headers";
            if (!parse_length(&header, &answer->body_length)) return "sent a Content-Length that is not a number up to 1048576";
            has_length = true;
        } else if (is_named(&header, "Berth-Notice")) {
            answer->notice = header.value;
            header.value[header.value_length] = '\0';
        }
        line = end;
    }
    return has_length ? NULL : "sent no Content-Length";
}

/* Returns a connected, non-blocking socket, or -1 with errno. */
static int connect_to(const char *path, int64_t wait_ms) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    int64_t deadline_ms = io_now_ms() + wait_ms;
    for (int64_t pause_ms = FIRST_PAUSE_MS;; pause_ms = pause_ms < LAST_PAUSE_MS ? pause_ms * 2 : LAST_PAUSE_MS) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
        int64_t left_ms = deadline_ms - io_now_ms();
        if (left_ms <= 0) break;
        if (left_ms < pause_ms) pause_ms = left_ms;
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool has_input(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Returns NULL if everything was sent, or if no more has to be: the server has answered early, or no longer reads. */
static const char *send_all(int fd, const struct http_request *request, int64_t deadline_ms) {
    for (size_t sent = 0; sent < request->length;) {
        ssize_t count = send(fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
        if (count >= 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN) {
            if (io_wait(fd, POLLIN | POLLOUT, deadline_ms) != 0) return "did not read the request within the time limit";
            if (has_input(fd)) return NULL;
        } else if (errno != EINTR) {
            return NULL;
        }
    }
    return NULL;
}

/* Receives until the head is complete, and then as many bytes as it announces; anything further is ignored. */
static const char *receive_answer(int fd, int64_t deadline_ms, struct http_answer *answer) {
    size_t count = 0, searched = 0, total = 0;
    while (total == 0 || count < total) {
        if (io_wait(fd, POLLIN, deadline_ms) != 0) return "gave no complete answer within the time limit";
        ssize_t more = recv(fd, received + count, sizeof received - count, 0);
        if (more == 0) return "closed the connection before its answer was complete";
        if (more < 0 && errno != EINTR && errno != EAGAIN) return "broke the connection before its answer was complete";
        if (more < 0) continue;
        count += (size_t)more;
        if (total > 0) continue;
        const char *end = memmem(received + searched, count - searched, "\r\n\r\n", 4);
        size_t head_length = end == NULL ? count : (size_t)(end + 4 - received);
        if (head_length > HTTP_HEAD_LIMIT) return "sent more than 16384 bytes of headers";
        searched = count < 3 ? 0 : count - 3;
        if (end == NULL) continue;
        const char *refused = http_parse_head(received, head_length, answer);
        if (refused != NULL) return refused;
        answer->body = received + head_length;
        total = head_length + answer->body_length;
    }
    return NULL;
}

/* "cannot be reached: Connection refused" */
static const char *explain_unreachable(int error) {
    static char reason[128];
    struct text text = {.start = reason, .capacity = sizeof reason - 1};
    text_add(&text, "cannot be reached: ");
    text_add(&text, strerror(error));
    return reason;
}

const char *http_exchange(const struct http_request *request, struct http_answer *answer) {
    *answer = (struct http_answer){0};
    int fd = connect_to(request->socket_path, request->connect_ms);
    if (fd < 0) return explain_unreachable(errno);
    int64_t deadline_ms = io_now_ms() + request->answer_ms;
    const char *reason = send_all(fd, request, deadline_ms);
    if (reason == NULL) reason = receive_answer(fd, deadline_ms, answer);
    close(fd);
    return reason;
}
