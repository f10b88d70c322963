/*
 * One HTTP request over a unix socket and its answer, as docs/shim-protocol.md has them.
 * Called by shim.c; knows nothing of CNI.
 * Effects: connects, sends, receives, sleeps between attempts to connect.
 */
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

/*
 * NULL when there is a complete answer, whose parts lie in a static buffer: one exchange per execution. Otherwise what the server
 * did instead, a sentence without its subject. Nothing is sent twice: it may have acted on what it did not answer.
 */
const char *http_exchange(const struct http_request *request, struct http_answer *answer);

/*
 * Reads status line and headers, head[0, length) ending in an empty line. Sets status, body_length and notice, and ends the
 * notice with a NUL in place. Returns NULL, or the reason why the head is refused: no HTTP/1, no single Content-Length, one
 * above HTTP_BODY_LIMIT, chunks.
 */
const char *http_parse_head(char *head, size_t length, struct http_answer *answer);

#endif
