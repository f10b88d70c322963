/*
 * The system calls that Node.js lacks, one function each, for host/kernel/native.ts. No policy: what to open, send or believe is
 * decided there.
 * Every function returns a number ≥ 0, or -errno; it throws a TypeError only for arguments of a wrong type or number.
 * No state: the module may be loaded by any number of threads.
 * Effects: the system calls.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 9
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/nsfs.h>
#include <node_api.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGUMENT_LIMIT 4

/* A Uint8Array or BigUint64Array of the caller; valid until the function returns. */
struct bytes {
    void *start;
    size_t length;
};

static bool refuse(napi_env env, const char *wanted) {
    napi_throw_type_error(env, NULL, wanted);
    return false;
}

/* Leaves a pending TypeError and returns false when there are not exactly `count` arguments; so do the readers below. */
static bool read_arguments(napi_env env, napi_callback_info info, napi_value *arguments, size_t count) {
    size_t given = ARGUMENT_LIMIT;
    napi_get_cb_info(env, info, &given, arguments, NULL, NULL);
    return given == count || refuse(env, "Wrong number of arguments");
}

static bool read_int(napi_env env, napi_value value, int *number) {
    double whole;
    bool given = napi_get_value_double(env, value, &whole) == napi_ok;
    if (!given || !(whole >= INT32_MIN && whole <= INT32_MAX) || whole != (int32_t)whole)
        return refuse(env, "Argument is no 32-bit integer");
    *number = (int32_t)whole;
    return true;
}

static bool read_ints(napi_env env, const napi_value *values, int *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!read_int(env, values[i], &numbers[i])) return false;
    return true;
}

static bool read_bytes(napi_env env, napi_value value, napi_typedarray_type wanted, struct bytes *bytes) {
    bool is_array = false;
    napi_typedarray_type type;
    napi_is_typedarray(env, value, &is_array);
    if (is_array) napi_get_typedarray_info(env, value, &type, &bytes->length, &bytes->start, NULL, NULL);
    if (is_array && type == wanted) return true;
    return refuse(env, wanted == napi_uint8_array ? "Argument is no Uint8Array" : "Argument is no BigUint64Array");
}

static napi_value number_of(napi_env env, int64_t number) {
    napi_value value;
    napi_create_int64(env, number, &value);
    return value;
}

/* The result of a system call, which is -1 when errno tells more. */
static napi_value outcome_of(napi_env env, int64_t result) {
    return number_of(env, result < 0 ? -errno : result);
}

/* socket(domain, type, protocol): descriptor */
static napi_value addon_socket(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[3];
    if (!read_arguments(env, info, arguments, 3) || !read_ints(env, arguments, numbers, 3)) return NULL;
    return outcome_of(env, socket(numbers[0], numbers[1], numbers[2]));
}

typedef int address_call(int, const struct sockaddr *, socklen_t);

static napi_value with_address(napi_env env, napi_callback_info info, address_call *call) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    struct bytes address;
    if (!read_arguments(env, info, arguments, 2) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &address)) return NULL;
    return outcome_of(env, call(fd, address.start, (socklen_t)address.length));
}

/* bind(fd, address: Uint8Array): 0 */
static napi_value addon_bind(napi_env env, napi_callback_info info) {
    return with_address(env, info, bind);
}

/* connect(fd, address: Uint8Array): 0 */
static napi_value addon_connect(napi_env env, napi_callback_info info) {
    return with_address(env, info, connect);
}

/* send(fd, bytes: Uint8Array, flags): bytes sent */
static napi_value addon_send(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd, flags;
    struct bytes bytes;
    if (!read_arguments(env, info, arguments, 3) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &bytes) || !read_int(env, arguments[2], &flags)) return NULL;
    return outcome_of(env, send(fd, bytes.start, bytes.length, flags));
}

/* recv(fd, into: Uint8Array, flags): bytes received; blocks the thread unless flags or the socket say otherwise */
static napi_value addon_recv(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd, flags;
    struct bytes bytes;
    if (!read_arguments(env, info, arguments, 3) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &bytes) || !read_int(env, arguments[2], &flags)) return NULL;
    return outcome_of(env, recv(fd, bytes.start, bytes.length, flags));
}

/* setsockopt(fd, level, name, value: integer): 0 */
static napi_value addon_setsockopt(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[4];
    if (!read_arguments(env, info, arguments, 4) || !read_ints(env, arguments, numbers, 4)) return NULL;
    return outcome_of(env, setsockopt(numbers[0], numbers[1], numbers[2], &numbers[3], sizeof numbers[3]));
}

/* close(fd): 0 */
static napi_value addon_close(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    if (!read_arguments(env, info, arguments, 1) || !read_int(env, arguments[0], &fd)) return NULL;
    return outcome_of(env, close(fd));
}

/* open(path, flags, mode): descriptor */
static napi_value addon_open(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    char path[PATH_MAX + 8]; /* more than a path: one that is cut here is still too long */
    size_t length;
    int numbers[2];
    if (!read_arguments(env, info, arguments, 3)) return NULL;
    if (napi_get_value_string_utf8(env, arguments[0], path, sizeof path, &length) != napi_ok) {
        refuse(env, "Argument is no string");
        return NULL;
    }
    if (!read_ints(env, arguments + 1, numbers, 2)) return NULL;
    if (strlen(path) != length) return number_of(env, -EINVAL); /* a NUL inside */
    if (length >= PATH_MAX) return number_of(env, -ENAMETOOLONG);
    return outcome_of(env, open(path, numbers[0], (mode_t)numbers[1]));
}

/* setns(fd, kind: CLONE_NEW*): 0; of the calling thread only */
static napi_value addon_setns(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[2];
    if (!read_arguments(env, info, arguments, 2) || !read_ints(env, arguments, numbers, 2)) return NULL;
    return outcome_of(env, setns(numbers[0], numbers[1]));
}

/* identify(fd, into: BigUint64Array of 2): the namespace's kind, CLONE_NEW*; into = [device, inode]. -ENOTTY: no namespace. */
static napi_value addon_identify(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    struct bytes into;
    if (!read_arguments(env, info, arguments, 2) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_biguint64_array, &into)) return NULL;
    if (into.length < 2) return number_of(env, -EINVAL);
    struct stat status;
    int kind = ioctl(fd, NS_GET_NSTYPE);
    if (kind < 0 || fstat(fd, &status) != 0) return number_of(env, -errno);
    uint64_t identity[2] = {status.st_dev, status.st_ino};
    memcpy(into.start, identity, sizeof identity);
    return number_of(env, kind);
}

NAPI_MODULE_INIT() {
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {
        {"socket", addon_socket}, {"bind", addon_bind},   {"connect", addon_connect},       {"send", addon_send},
        {"recv", addon_recv},     {"close", addon_close}, {"setsockopt", addon_setsockopt}, {"open", addon_open},
        {"setns", addon_setns},   {"identify", addon_identify},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value function;
        napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL, &function);
        napi_set_named_property(env, exports, functions[i].name, function);
    }
    return exports;
}
