/* One HTTP request over a Unix socket and its answer, as docs/develop/shim-protocol.md defines them. Knows nothing of CNI. */
#ifndef BERTH_HTTP_H
#define BERTH_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct http_answer {
    int status;
    const char *body;
    size_t body_length;
    const char *notice; /* value of the header Berth-Notice, NULL when there is none */
};

struct http_request {
    const char *socket_path; /* shorter than sun_path */
    const char *bytes;       /* head and body */
    size_t length;
    int64_t connect_ms; /* attempts to connect are repeated for this long; 0: one attempt */
    int64_t answer_ms;  /* from the connection to the last byte of the answer */
};

/* Returns NULL if there is a complete answer, whose parts are in a static buffer: one exchange per execution.
 * Otherwise returns the server's failure, a sentence without its subject. Never sends twice: the server may have
 * acted on a request that it did not answer. */
const char *http_exchange(const struct http_request *request, struct http_answer *answer);

/*
 * Reads the status line and headers, head[0, length) ending in an empty line. Sets status, body_length and notice,
 * and terminates the notice with a NUL in place. Returns NULL, or why the head is refused: not HTTP/1, not exactly
 * one Content-Length, one above HTTP_BODY_LIMIT, or chunked.
 */
const char *http_parse_head(char *head, size_t length, struct http_answer *answer);

#endif
