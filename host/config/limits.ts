/**
 * The limits of configuration, each explained in docs/limits.md.
 * Effects: none.
 */

/** Characters of a Kubernetes object's name (RFC 1123 subdomain). */
export const MAX_NAME_LENGTH = 253;

/** Characters of a DNS label, of a label's name and of its value in Kubernetes. */
export const MAX_LABEL_LENGTH = 63;

/** The range of routing tables that Berth uses inside pods: the reply path's, then one per NIC. */
export const POD_TABLES_FIRST = 100;
export const POD_TABLES_LAST = 199;

/** Routing tables are 32-bit numbers. */
export const MAX_ROUTE_TABLE = 4_294_967_295;

/** Requests of one gateway detection. */
export const MAX_DETECT_RETRY = 100;
