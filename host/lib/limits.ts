/**
 * The limits of error texts and of the log, each explained in docs/limits.md.
 * Effects: none.
 */

/** Longest piece of a found value that an error shows: UTF-16 units. */
export const MAX_SHOWN_VALUE = 80;

/** Most mismatches that one error shows. */
export const MAX_SHOWN_MISMATCHES = 8;

/** Longest piece of malformed JSON that an error shows: UTF-16 units. */
export const MAX_SHOWN_JSON = 12;

/** Longest message of an error that leaves the agent, to a runtime, an event or the log: UTF-16 units. A tenant may be its cause as often as it likes. */
export const MAX_ERROR_MESSAGE = 2_048;

/** Longest details of such an error, and longest message with all names in the log: UTF-16 units. */
export const MAX_ERROR_DETAILS = 4_096;

/** Most of an executable's log that waits for its reader: bytes. What comes while so much waits is lost, and counted. */
export const MAX_UNREAD_LOG_BYTES = 1024 * 1024;

/** How often a reader that has stopped is tried again: milliseconds. */
export const LOG_RETRY_MS = 100;
