/**
 * The limits of the protocol, each explained in docs/limits.md.
 * Effects: none.
 */

/** Longest name of an interface, IFNAMSIZ of linux/if.h less its final NUL: bytes. */
export const MAX_IF_NAME_BYTES = 15;
