/*
 * Builds the request of docs/develop/shim-protocol.md from stdin and the environment. Exits with error JSON if something
 * cannot be forwarded.
 */
#ifndef BERTH_REQUEST_H
#define BERTH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of the variable, or `otherwise` if it is unset or empty. */
const char *variable_or(const char *name, const char *otherwise);

/* The request has these values in place of CNI_COMMAND and CNI_NETNS, and nothing else of CNI's environment. */
void take_arguments(const char *command, const char *netns);

/*
 * Returns a variable in seconds (decimals allowed) as milliseconds; `otherwise` if it is unset. Fails with code 4 for
 * anything else.
 */
int64_t milliseconds_of(const char *name, int64_t otherwise);

/* Returns the path of the agent's socket. Fails with code 4 if it is too long for a socket address. */
const char *socket_path(void);

/*
 * Reads stdin to its end within `limit_ms`; replies refer to its text from now on. More than STDIN_LIMIT fails with code
 * 6, and is no text for a DEL.
 */
void read_config(int64_t limit_ms, bool is_del);

/*
 * Returns the bytes of the request, in a static buffer; call read_config first. A DEL omits variables
 * that no header can carry: a variable for which an ADD was refused must not prevent the pod's deletion.
 */
const char *build_request(const char *plugin, bool is_del, size_t *length);

#endif
