/*
 * Records a DEL that the agent could not process, durably, for the agent to process later (docs/develop/shim-protocol.md,
 * "Spool").
 */
#ifndef BERTH_SPOOL_H
#define BERTH_SPOOL_H

#include <stddef.h>

/*
 * Writes `bytes` to a new file <seconds>.<nanoseconds, 9 digits>-<pid>.del in `directory`. Returns 0 if it is
 * complete and on disk; otherwise an errno, and the request is not recorded. A missing directory is created (0700),
 * its parents are not.
 */
int spool_write(const char *directory, const char *bytes, size_t length);

#endif
