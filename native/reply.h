/* Everything that the shim prints: CNI JSON on stdout, lines for people on stderr. Most functions exit. */
#ifndef BERTH_REPLY_H
#define BERTH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

/* CNI 1.1, "Well-known Error Codes". */
enum code { ENVIRONMENT = 4, INPUT_OUTPUT = 5, DECODE = 6, TRY_AGAIN = 11, NOT_AVAILABLE = 50 };

/* Sets the configuration that replies refer to: they use its cniVersion, or 1.1.0 if it has no valid one. */
void reply_to(const char *config, size_t length);

/* Errors have the form that netavark reads from now on: {"error": "..."}. */
void reply_as_netavark(void);
bool is_for_netavark(void);

/* Prints error JSON and exits with 1. The message consists of the pieces up to NULL, escaped as by text_add_json. */
__attribute__((noreturn, sentinel)) void fail(enum code code, ...);

/*
 * Answers VERSION and exits. Fails with code 6 if the configuration is neither empty nor a JSON object, or its
 * cniVersion is invalid.
 */
__attribute__((noreturn)) void reply_versions(void);

/* Prints a driver's answer to netavark's `info`, and exits with 0. */
__attribute__((noreturn)) void reply_driver_info(void);

/* Prints checked CNI error JSON, for netavark in its own form, and exits with 1. */
__attribute__((noreturn)) void reply_error(const char *body, size_t length);

/* Prints a checked body on stdout and exits with `exit_code`, or with 1 if stdout cannot be written. */
__attribute__((noreturn)) void reply_body(const char *body, size_t length, int exit_code);

/* Prints the pieces up to NULL as one line on stderr, escaped as by text_add_plain. */
__attribute__((sentinel)) void print_line(const char *piece, ...);

/* Prints the shim's version and the supported protocol versions on stderr. */
void print_about(void);

#endif
