#include "arguments.h"

bool refuse(napi_env env, const char *wanted) {
    napi_throw_type_error(env, NULL, wanted);
    return false;
}

/* Returns false and leaves a pending TypeError unless there are exactly `count` arguments; so do the readers below. */
bool read_arguments(napi_env env, napi_callback_info info, napi_value *arguments, size_t count) {
    size_t given = ARGUMENT_LIMIT;
    napi_get_cb_info(env, info, &given, arguments, NULL, NULL);
    return given == count || refuse(env, "Wrong number of arguments");
}

bool read_int(napi_env env, napi_value value, int *number) {
    double whole;
    bool given = napi_get_value_double(env, value, &whole) == napi_ok;
    if (!given || !(whole >= INT32_MIN && whole <= INT32_MAX) || whole != (int32_t)whole)
        return refuse(env, "Argument is not a 32-bit integer");
    *number = (int32_t)whole;
    return true;
}

bool read_ints(napi_env env, const napi_value *values, int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!read_int(env, values[i], &numbers[i])) return false;
    return true;
}

bool read_bytes(napi_env env, napi_value value, napi_typedarray_type wanted, struct bytes *bytes) {
    bool is_array = false;
    napi_typedarray_type type;
    napi_is_typedarray(env, value, &is_array);
    if (is_array) napi_get_typedarray_info(env, value, &type, &bytes->length, &bytes->start, NULL, NULL);
    if (is_array && type == wanted) return true;
    return refuse(env, wanted == napi_uint8_array ? "Argument is not a Uint8Array" : "Argument is not a BigUint64Array");
}

napi_value number_of(napi_env env, int64_t number) {
    napi_value value;
    napi_create_int64(env, number, &value);
    return value;
}
