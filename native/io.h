/* Waiting for and writing to descriptors. Deadlines are times of CLOCK_MONOTONIC in milliseconds. */
#ifndef BERTH_IO_H
#define BERTH_IO_H

#include <stddef.h>
#include <stdint.h>

/* Returns CLOCK_MONOTONIC in milliseconds. */
int64_t io_now_ms(void);

/*
 * Waits until `fd` is ready for `events` (POLLIN, POLLOUT) or broken. Returns 0, ETIMEDOUT at the deadline, or
 * another errno.
 */
int io_wait(int fd, short events, int64_t deadline_ms);

/* Writes everything, despite interruptions, partial writes and non-blocking descriptors. Returns 0 or an errno. */
int io_write_all(int fd, const char *bytes, size_t length);

#endif
