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

/** Most entries of each of `namespaceName`, `nodeName` and `multusName`. */
export const MAX_NAMES = 1_024;

/** Longest entry of `multusName`: characters. A namespace, a slash and a name. */
export const MAX_NETWORK_REFERENCE = 317;

/** Most holders of one address: a virtual machine that migrates has two. */
export const MAX_HOLDERS = 2;

/** Longest UID of a pod or a workload: characters. It is a label's value. */
export const MAX_UID_LENGTH = 63;

/** Longest name of an object or a link in an IPAllocation: characters. */
export const MAX_ALLOCATION_TEXT = 253;

/** Largest bitmap of a pool's usage object: bytes, one bit for each address. Larger pools have free counts for each block instead. */
export const MAX_USAGE_BITMAP_BYTES = 65_536;

/** Most blocks of 4,096 addresses for which a usage object counts what is free. */
export const MAX_USAGE_BLOCKS = 4_096;

/** Longest reason for the size of a generated pool: characters. */
export const MAX_REASON_LENGTH = 512;

/** Most pools that are generated out of one Subnet; its status lists them all, and etcd takes 1.5 MB. */
export const MAX_POOLS_OF_SUBNET = 2_048;

/** Most NICs of a workload's pods for which pools are generated. */
export const MAX_APPLICATION_NICS = 32;

/** Most labels of a pod that are kept. A pool's `podAffinity` is not judged for a pod with more, and such a pool does not serve it. */
export const MAX_KEPT_LABELS = 128;

/** Most annotations under `ipam.vendor.io/` that are kept of one object: more than there are. */
export const MAX_KEPT_ANNOTATIONS = 32;

/** Largest `spec.config` of a NetworkAttachmentDefinition that is used: bytes. Every agent keeps those of all namespaces. */
export const MAX_DEFINITION_CONFIG_BYTES = 65_536;

/** Most namespaces that the controller reports as having as many addresses as they may have. */
export const MAX_FULL_NAMESPACES = 1_024;
