/**
 * The ceilings of the Wasm core (assembly/abi.ts, assembly/abi.json), each explained in docs/limits.md.
 */

/** Ordinals of one pool that can be found in ascending, round-robin or hashed order; those beyond are claimed one by one. @limit */
export const MAX_WINDOW = 2 ** 24;

/** Used addresses beyond the window, per pool. @limit */
export const MAX_SPARSE = 2 ** 20;

/** Ranges in a set, after joining those that touch. @limit */
export const MAX_RANGES = 2 ** 20;

/** Live pools and sets in one instance. @limit */
export const MAX_OBJECTS = 2 ** 16;

/** Length of the buffer through which host and core pass addresses: bytes. @limit */
export const MAX_EXCHANGE = 2 ** 28;
