/**
 * The limits of the coordinator, each explained in docs/limits.md.
 * Effects: none.
 */

/** Probes for one address, spread over the window of conflict detection (RFC 5227: PROBE_NUM). */
export const PROBE_COUNT = 3;

/** The first probe or question goes out within this, at a random moment: milliseconds. Pods that start together are out of step. */
export const FIRST_PROBE_JITTER_MS = 2;

/**
 * Longest detection, of a conflict or of a gateway, that may be configured: milliseconds. Twice that and CARRIER_WAIT_MS are less than the shim's limit
 * of an ADD, ADD_LIMIT_MS: on an ipvlan gateways are asked after the address.
 */
export const MAX_DETECTION_MS = 35_000;

/** How long detection waits for a link's carrier before it says that it cannot judge: milliseconds. A new bond takes its time. */
export const CARRIER_WAIT_MS = 10_000;

/** Between the two announcements of an address: milliseconds (RFC 5227: ANNOUNCE_INTERVAL). */
export const ANNOUNCE_INTERVAL_MS = 2_000;

/** Most tables of a node (`hostRuleTable`) that definitions may name: each adds a rule for all of the node's traffic, and rules stay. */
export const MAX_HOST_TABLES = 8;

/** Most addresses of one pod, those of all its NICs and of router advertisements together. Each is a route and a neighbour of the node. */
export const MAX_POD_ADDRESSES = 256;
