/**
 * The limits of error texts, each explained in docs/limits.md.
 * Effects: none.
 */

/** Longest piece of a found value that an error shows: UTF-16 units. */
export const MAX_SHOWN_VALUE = 80;

/** Most mismatches that one error shows. */
export const MAX_SHOWN_MISMATCHES = 8;

/** Longest piece of malformed JSON that an error shows: UTF-16 units. */
export const MAX_SHOWN_JSON = 12;
