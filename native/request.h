/*
 * The request of docs/shim-protocol.md out of stdin and the environment. Called by shim.c.
 * Effects: reads both; what cannot be forwarded ends the execution with error JSON.
 */
#ifndef BERTH_REQUEST_H
#define BERTH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of the variable, or `otherwise` when it is not set or empty. */
const char *variable_or(const char *name, const char *otherwise);

/* A variable in seconds (decimals allowed) as milliseconds; `otherwise` when it is not set; code 4 when it is no such number. */
int64_t milliseconds_of(const char *name, int64_t otherwise);

/* Where the agent listens; code 4 when that is too long for a socket's address. */
const char *socket_path(void);

/* Reads stdin to its end, within `limit_ms`; its text is what replies answer from now on. */
void read_config(int64_t limit_ms);

/*
 * The request's bytes, after read_config. They lie in a static buffer. A DEL goes without the variables that it does not need and no header
 * can carry: what an ADD was refused for must not keep the pod from being deleted.
 */
const char *build_request(const char *plugin, bool is_del, size_t *length);

#endif
