#include "io.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

int64_t io_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int io_wait(int fd, short events, int64_t deadline_ms) {
    for (;;) {
        int64_t left = deadline_ms - io_now_ms();
        if (left <= 0) return ETIMEDOUT;
        struct pollfd entry = {.fd = fd, .events = events};
        int ready = poll(&entry, 1, left > INT_MAX ? INT_MAX : (int)left);
        if (ready > 0) return 0;
        if (ready < 0 && errno != EINTR) return errno;
    }
}

int io_write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written >= 0) {
            bytes += written;
            length -= (size_t)written;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}
