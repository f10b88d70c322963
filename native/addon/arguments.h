/*
 * Arguments of the addon's functions: JavaScript values as numbers and bytes. Each reader returns false and leaves a
 * pending TypeError for a value of another type.
 */
#ifndef BERTH_ARGUMENTS_H
#define BERTH_ARGUMENTS_H

#define NAPI_VERSION 9
#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARGUMENT_LIMIT 4

/* A Uint8Array or BigUint64Array of the caller; valid until the function returns. */
struct bytes {
    void *start;
    size_t length;
};

bool refuse(napi_env env, const char *wanted);
bool read_arguments(napi_env env, napi_callback_info info, napi_value *arguments, size_t count);
bool read_int(napi_env env, napi_value value, int *number);
bool read_ints(napi_env env, const napi_value *values, int *numbers, size_t count);
bool read_bytes(napi_env env, napi_value value, napi_typedarray_type wanted, struct bytes *bytes);
napi_value number_of(napi_env env, int64_t number);

#endif
