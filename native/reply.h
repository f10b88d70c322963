/*
 * Everything that the shim prints: CNI JSON on stdout, lines for people on stderr. Called by shim.c and request.c.
 * Effects: writes; most functions end the execution.
 */
#ifndef BERTH_REPLY_H
#define BERTH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

/* CNI 1.1, "Well-known Error Codes". */
enum code { ENVIRONMENT = 4, INPUT_OUTPUT = 5, DECODE = 6, TRY_AGAIN = 11, NOT_AVAILABLE = 50 };

/* The configuration that replies answer: theirs is its cniVersion, or 1.1.0 when no such string can be found in it. */
void reply_to(const char *config, size_t length);

/* Prints error JSON, its message being the pieces up to NULL, joined; exits with 1. Escaped as text_add_json does. */
__attribute__((noreturn, sentinel)) void fail(enum code code, ...);

/* Answers VERSION; exits. A configuration that is neither empty nor a JSON object, or whose cniVersion is no version, is code 6. */
__attribute__((noreturn)) void reply_versions(void);

/* Prints a checked body on stdout; exits with `exit_code`, or with 1 when nobody takes the body. */
__attribute__((noreturn)) void reply_body(const char *body, size_t length, int exit_code);

/* Prints the pieces up to NULL as one line on stderr, as text_add_plain shows them. */
__attribute__((sentinel)) void print_line(const char *piece, ...);

/* What the shim is and speaks, on stderr. */
void print_about(void);

#endif
