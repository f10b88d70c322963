/**
 * The limits of resources, each explained in docs/limits.md.
 * Effects: none.
 */

/** Most entries of `ips` and of `excludeIPs`; what the API server's rules can afford. */
export const MAX_RANGES = 1_024;

/** Longest entry of `ips` and of `excludeIPs`: characters. Two IPv6 addresses in full and a dash are 79. */
export const MAX_RANGE_LENGTH = 80;

/** Most entries of `routes`. */
export const MAX_ROUTES = 128;
