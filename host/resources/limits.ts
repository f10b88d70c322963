/**
 * The limits of resources, each explained in docs/limits.md.
 * Effects: none.
 */

/** Entries of `ips` and of `excludeIPs`; what the API server's rules can afford. */
export const MAX_RANGES = 1_024;

/** Characters of one entry: two IPv6 addresses written out in full and a dash are 79. */
export const MAX_RANGE_LENGTH = 80;

/** Entries of `routes`. */
export const MAX_ROUTES = 128;
