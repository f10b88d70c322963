/**
 * The limits of talking to the kernel, each explained in docs/limits.md.
 * Effects: none.
 */

/** Dumps of a table that changes meanwhile are repeated; one that changes during each of so many is changing without end. */
export const DUMP_ATTEMPTS = 16;

/** Frames or messages that one socket gives its listener before the event loop serves others. */
export const MAX_FRAMES_PER_TURN = 64;

/** Frames that are read out of one socket at once when all that has come must be seen. The kernel keeps some hundred at most. */
export const MAX_FRAMES_PER_DRAIN = 4_096;

/**
 * Most routes, rules, addresses, links … of one family that are read in a pod's namespace. Who may change it decides how many there are, and
 * the whole node waits while they are read. As many as definitions may ask for in a pod of four NICs.
 */
export const MAX_POD_ENTRIES = 16_384;

/** Longest answer to a netlink question that is read: bytes. The kernel's dumps come in pieces of at most this. */
export const MAX_DATAGRAM_BYTES = 32_768;
