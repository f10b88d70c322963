/* The system calls that Node.js lacks, one function each, for host/kernel/native.ts, which decides about opening,
 * sending and trust. Every function returns a number ≥ 0, or -errno; it throws a TypeError only for arguments of a
 * wrong type or number. The module has no state and may be loaded by any number of threads. Arguments are read in
 * arguments.c; watch.c waits for descriptors. */
#define _GNU_SOURCE
#include "watch.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Returns the result of a system call, or -errno. */
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

/*
 * The longest datagram that the kernel makes for a netlink socket; it makes the parts of a dump as long as the room
 * for them.
 */
#define LONGEST_ANSWER 32768
/* Larger than any error number of the kernel. */
#define RECEIVING 4096

/* exchange(fd, request: Uint8Array, into: Uint8Array): bytes received. Sends the request, then receives without
 * waiting, datagram behind datagram from the next multiple of four, until there is no more, or no room for the
 * longest. Returns -errno if sending fails, -RECEIVING - errno if receiving fails; earlier datagrams are then lost. */
static napi_value addon_exchange(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    struct bytes request, into;
    if (!read_arguments(env, info, arguments, 3) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &request)) return NULL;
    if (!read_bytes(env, arguments[2], napi_uint8_array, &into)) return NULL;
    if (send(fd, request.start, request.length, 0) < 0) return number_of(env, -errno);
    size_t used = 0;
    while (into.length - used >= LONGEST_ANSWER) {
        char *at = (char *)into.start + used;
        ssize_t length = recv(fd, at, LONGEST_ANSWER, MSG_DONTWAIT | MSG_TRUNC);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && errno == EAGAIN) break;
        if (length < 0 || length > LONGEST_ANSWER) return number_of(env, -RECEIVING - (length < 0 ? errno : EMSGSIZE));
        used += (size_t)length;
        while (used % 4 != 0) ((char *)into.start)[used++] = 0;
    }
    return number_of(env, (int64_t)used);
}

/* sendto(fd, bytes: Uint8Array, flags, to: Uint8Array): bytes sent */
static napi_value addon_sendto(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd, flags;
    struct bytes bytes, to;
    if (!read_arguments(env, info, arguments, 4) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &bytes) || !read_int(env, arguments[2], &flags)) return NULL;
    if (!read_bytes(env, arguments[3], napi_uint8_array, &to)) return NULL;
    return outcome_of(env, sendto(fd, bytes.start, bytes.length, flags, to.start, (socklen_t)to.length));
}

/*
 * recvfrom(fd, into: Uint8Array, flags, from: Uint8Array): bytes received; as much of the sender's address as `from`
 * holds
 */
static napi_value addon_recvfrom(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd, flags;
    struct bytes into, from;
    if (!read_arguments(env, info, arguments, 4) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &into) || !read_int(env, arguments[2], &flags)) return NULL;
    if (!read_bytes(env, arguments[3], napi_uint8_array, &from)) return NULL;
    socklen_t room = (socklen_t)from.length;
    return outcome_of(env, recvfrom(fd, into.start, into.length, flags, from.start, &room));
}

/* setsockopt(fd, level, name, value: integer | Uint8Array): 0 */
static napi_value addon_setsockopt(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[3], number;
    struct bytes value = {&number, sizeof number};
    bool is_array = false;
    if (!read_arguments(env, info, arguments, 4) || !read_ints(env, arguments, numbers, 3)) return NULL;
    napi_is_typedarray(env, arguments[3], &is_array);
    if (is_array ? !read_bytes(env, arguments[3], napi_uint8_array, &value) : !read_int(env, arguments[3], &number))
        return NULL;
    return outcome_of(env, setsockopt(numbers[0], numbers[1], numbers[2], value.start, (socklen_t)value.length));
}

/* getsockopt(fd, level, name, into: Uint8Array): bytes written; at most as many as `into` holds */
static napi_value addon_getsockopt(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[3];
    struct bytes into;
    if (!read_arguments(env, info, arguments, 4) || !read_ints(env, arguments, numbers, 3)) return NULL;
    if (!read_bytes(env, arguments[3], napi_uint8_array, &into)) return NULL;
    socklen_t length = (socklen_t)into.length;
    if (getsockopt(numbers[0], numbers[1], numbers[2], into.start, &length) != 0) return number_of(env, -errno);
    return number_of(env, length);
}

/*
 * attachFilter(fd, program: Uint8Array of struct sock_filter): 0. The option takes a pointer, which JavaScript cannot
 * make.
 */
static napi_value addon_attach_filter(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    struct bytes program;
    if (!read_arguments(env, info, arguments, 2) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &program)) return NULL;
    if (program.length % sizeof(struct sock_filter) != 0) return number_of(env, -EINVAL);
    size_t count = program.length / sizeof(struct sock_filter);
    if (count == 0 || count > BPF_MAXINSNS) return number_of(env, -EINVAL);
    struct sock_fprog filter = {.len = (unsigned short)count, .filter = program.start};
    return outcome_of(env, setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
}

/* close(fd): 0 */
static napi_value addon_close(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    if (!read_arguments(env, info, arguments, 1) || !read_int(env, arguments[0], &fd)) return NULL;
    return outcome_of(env, close(fd));
}

#define PATH_ROOM (PATH_MAX + 8) /* more than a path: one that is cut here is still too long */

/*
 * Reads a path. Returns false with an exception for anything but a text; `error` is -errno for a text that is no
 * path, else 0.
 */
static bool read_path(napi_env env, napi_value argument, char path[PATH_ROOM], int *error) {
    size_t length;
    if (napi_get_value_string_utf8(env, argument, path, PATH_ROOM, &length) != napi_ok) {
        refuse(env, "Argument is not a string");
        return false;
    }
    *error = strlen(path) != length ? -EINVAL /* a NUL inside */ : length >= PATH_MAX ? -ENAMETOOLONG : 0;
    return true;
}

/* open(path, flags, mode): descriptor */
static napi_value addon_open(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    char path[PATH_ROOM];
    int numbers[2], error;
    if (!read_arguments(env, info, arguments, 3) || !read_path(env, arguments[0], path, &error)) return NULL;
    if (!read_ints(env, arguments + 1, numbers, 2)) return NULL;
    if (error != 0) return number_of(env, error);
    return outcome_of(env, open(path, numbers[0], (mode_t)numbers[1]));
}

/* read(fd, into: Uint8Array): bytes read; -EAGAIN if there is nothing yet and the descriptor does not block */
static napi_value addon_read(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    struct bytes into;
    if (!read_arguments(env, info, arguments, 2) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_uint8_array, &into)) return NULL;
    return outcome_of(env, read(fd, into.start, into.length));
}

/* inotifyInit(flags: IN_NONBLOCK | IN_CLOEXEC): descriptor */
static napi_value addon_inotify_init(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int flags;
    if (!read_arguments(env, info, arguments, 1) || !read_int(env, arguments[0], &flags)) return NULL;
    return outcome_of(env, inotify_init1(flags));
}

/* inotifyAddWatch(fd, path, mask: IN_*): number of the watch */
static napi_value addon_inotify_add_watch(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    char path[PATH_ROOM];
    int fd, mask, error;
    if (!read_arguments(env, info, arguments, 3) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_path(env, arguments[1], path, &error) || !read_int(env, arguments[2], &mask)) return NULL;
    if (error != 0) return number_of(env, error);
    return outcome_of(env, inotify_add_watch(fd, path, (uint32_t)mask));
}

/* flock(fd, operation: LOCK_*): 0; blocks the thread unless LOCK_NB is in it */
static napi_value addon_flock(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[2];
    if (!read_arguments(env, info, arguments, 2) || !read_ints(env, arguments, numbers, 2)) return NULL;
    return outcome_of(env, flock(numbers[0], numbers[1]));
}

/* setns(fd, kind: CLONE_NEW*): 0; of the calling thread only */
static napi_value addon_setns(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int numbers[2];
    if (!read_arguments(env, info, arguments, 2) || !read_ints(env, arguments, numbers, 2)) return NULL;
    return outcome_of(env, setns(numbers[0], numbers[1]));
}

/*
 * Returns the kind of a namespace, CLONE_NEW*, or -1. QEMU's user mode (7.2) does not know the ioctl: any namespace
 * then counts as a network namespace, and the kernel refuses one of another kind where it is used, in setns and for
 * IFLA_NET_NS_FD.
 */
static int kind_of(int fd) {
    struct statfs system;
    int kind = ioctl(fd, NS_GET_NSTYPE);
    if (kind >= 0 || errno != ENOSYS) return kind;
    if (fstatfs(fd, &system) != 0) return -1;
    if (system.f_type == NSFS_MAGIC) return CLONE_NEWNET;
    errno = ENOTTY;
    return -1;
}

/*
 * identify(fd, into: BigUint64Array of 2): the namespace's kind, CLONE_NEW*; into = [device, inode]. -ENOTTY: no
 * namespace.
 */
static napi_value addon_identify(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    int fd;
    struct bytes into;
    if (!read_arguments(env, info, arguments, 2) || !read_int(env, arguments[0], &fd)) return NULL;
    if (!read_bytes(env, arguments[1], napi_biguint64_array, &into)) return NULL;
    if (into.length < 2) return number_of(env, -EINVAL);
    struct statx status; /* fstat needs glibc 2.33, all else here 2.28 as Node.js does */
    int kind = kind_of(fd);
    if (kind < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) != 0) return number_of(env, -errno);
    uint64_t identity[2] = {makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
    memcpy(into.start, identity, sizeof identity);
    return number_of(env, kind);
}

NAPI_MODULE_INIT() {
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {
        {"socket", addon_socket},
        {"bind", addon_bind},
        {"connect", addon_connect},
        {"send", addon_send},
        {"exchange", addon_exchange},
        {"sendto", addon_sendto},
        {"recv", addon_recv},
        {"recvfrom", addon_recvfrom},
        {"setsockopt", addon_setsockopt},
        {"getsockopt", addon_getsockopt},
        {"attachFilter", addon_attach_filter},
        {"watch", addon_watch},
        {"unwatch", addon_unwatch},
        {"close", addon_close},
        {"open", addon_open},
        {"read", addon_read},
        {"inotifyInit", addon_inotify_init},
        {"inotifyAddWatch", addon_inotify_add_watch},
        {"flock", addon_flock},
        {"setns", addon_setns},
        {"identify", addon_identify},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value function;
        napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL, &function);
        napi_set_named_property(env, exports, functions[i].name, function);
    }
    return exports;
}
