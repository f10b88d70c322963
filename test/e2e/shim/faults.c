/*
 * System calls that fail on command, and report themselves: linked into a shim of the tests by the linker's --wrap.
 * FAULT=<call>:<n>:<errno>   call number n (from 1) of that name fails with errno
 * FAULT=<call>:0:<length>    every call of that name is given at most so many bytes
 * TRACE=<file>               the name of every wrapped call is appended, a line each
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum call { READ, WRITE, FSYNC, RENAMEAT, CLOSE, MKDIR, OPENAT, SOCKET, SEND, RECV, POLL, CALLS };
static const char *const NAMES[] = {"read", "write", "fsync", "renameat", "close", "mkdir", "openat", "socket", "send", "recv", "poll"};
static int counts[CALLS];

int __real_close(int fd);

static void trace(enum call call) {
    const char *path = getenv("TRACE");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    dprintf(fd, "%s\n", NAMES[call]);
    __real_close(fd);
}

/* Whether this call is to fail; errno is set. *length is shortened when that was ordered. */
static int fails(enum call call, size_t *length) {
    char name[16] = "";
    int number = 0, value = 0;
    const char *fault = getenv("FAULT");
    trace(call);
    counts[call]++;
    if (fault == NULL || sscanf(fault, "%15[a-z]:%d:%d", name, &number, &value) != 3) return 0;
    if (strcmp(name, NAMES[call]) != 0) return 0;
    if (number == 0 && length != NULL && *length > (size_t)value) *length = (size_t)value;
    if (number != counts[call]) return 0;
    errno = value;
    return 1;
}

#define WRAP(result, name, call, parameters, arguments, length)                                                                 \
    result __real_##name parameters;                                                                                             \
    result __wrap_##name parameters;                                                                                             \
    result __wrap_##name parameters {                                                                                            \
        return fails(call, length) ? -1 : __real_##name arguments;                                                               \
    }

WRAP(ssize_t, read, READ, (int fd, void *into, size_t length), (fd, into, length), &length)
WRAP(ssize_t, write, WRITE, (int fd, const void *bytes, size_t length), (fd, bytes, length), &length)
WRAP(ssize_t, send, SEND, (int fd, const void *bytes, size_t length, int flags), (fd, bytes, length, flags), &length)
WRAP(ssize_t, recv, RECV, (int fd, void *into, size_t length, int flags), (fd, into, length, flags), &length)
WRAP(int, fsync, FSYNC, (int fd), (fd), NULL)
WRAP(int, renameat, RENAMEAT, (int from, const char *old, int to, const char *new), (from, old, to, new), NULL)
WRAP(int, close, CLOSE, (int fd), (fd), NULL)
WRAP(int, mkdir, MKDIR, (const char *path, mode_t mode), (path, mode), NULL)
WRAP(int, openat, OPENAT, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode), NULL)
WRAP(int, socket, SOCKET, (int domain, int type, int protocol), (domain, type, protocol), NULL)
WRAP(int, poll, POLL, (struct pollfd *entries, nfds_t count, int timeout), (entries, count, timeout), NULL)
