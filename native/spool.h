/*
 * Keeps a DEL that nobody could take, durably, for the agent to do later (docs/shim-protocol.md, "Spool").
 * Called by shim.c.
 * Effects: creates a file, and its directory when that is missing; fsync.
 */
#ifndef BERTH_SPOOL_H
#define BERTH_SPOOL_H

#include <stddef.h>

/*
 * Writes `bytes` to a new file <seconds>.<nanoseconds, 9 digits>-<pid>.del in `directory`. When 0 is returned it is there, whole,
 * and on disk. Else an errno, and the request must not be taken for recorded. A missing directory is created (0700), its
 * parents are not.
 */
int spool_write(const char *directory, const char *bytes, size_t length);

#endif
