/**
 * The limits of configuration, each explained in docs/limits.md.
 * Effects: none.
 */

/** Longest name of a Kubernetes object (RFC 1123 subdomain): characters. */
export const MAX_NAME_LENGTH = 253;

/** Longest DNS label (namespace, address space), and longest name or value of a Kubernetes label: characters. */
export const MAX_LABEL_LENGTH = 63;

/** Most labels, expressions, or values of one expression, in a label selector. */
export const MAX_SELECTOR_ENTRIES = 128;

/** Longest key of a label: characters. A name of 253, a slash, and 63. */
export const MAX_LABEL_KEY_LENGTH = MAX_NAME_LENGTH + 1 + MAX_LABEL_LENGTH;

/** Longest text of an address: characters. Six groups of IPv6 and a dotted quad. */
export const MAX_ADDRESS_LENGTH = 45;

/** Longest text of a network in CIDR form: characters. */
export const MAX_PREFIX_LENGTH = MAX_ADDRESS_LENGTH + 4;

/** Longest text of a duration: characters. */
export const MAX_DURATION_LENGTH = 32;

/** Longest duration, which is the longest that a timer of Node.js waits: milliseconds. */
export const MAX_DURATION_MS = 2_147_483_647;

/** Longest annotation that Berth reads: UTF-16 units. A tenant writes it, the whole node's agent reads it. */
export const MAX_ANNOTATION_LENGTH = 16_384;

/** Most NICs for which one pod's annotations choose pools or Subnets, the first one included. */
export const MAX_POD_NICS = 32;

/** Most names in one list of an annotation: of pools, of Subnets, or patterns. */
export const MAX_LISTED_NAMES = 64;

/** Most different patterns in all lists of one annotation. Each is compared with every pool of the cluster, by the agent of the pod's node. */
export const MAX_PATTERNS = 64;

/** Most routes that one annotation adds to a pod. */
export const MAX_POD_ROUTES = 128;

/** First of the routing tables that Berth uses inside pods: the reply path's; each NIC's follow. */
export const POD_TABLES_FIRST = 100;

/** Last of the routing tables that Berth uses inside pods. */
export const POD_TABLES_LAST = 199;

/** Highest routing table: the kernel's numbers have 32 bits. */
export const MAX_ROUTE_TABLE = 4_294_967_295;

/** Most requests of one gateway detection (`detectOptions.retry`). */
export const MAX_DETECT_RETRY = 100;

/** Most networks in each of `overlayPodCIDR`, `serviceCIDR`, `hijackCIDR` and `hostRouteCIDR`: each is a route in every pod, and others wait meanwhile. */
export const MAX_CIDRS = 1_024;

/** Shortest prefix of an IPv4 network that is collected: no cluster has more to itself, and all of it would be led over the node. */
export const MIN_CLUSTER_IPV4_LENGTH = 8;

/** Shortest prefix of an IPv6 network that is collected. */
export const MIN_CLUSTER_IPV6_LENGTH = 16;

/** A collected IPv4 network with a shorter prefix than this is a wide one (MAX_WIDE_NETWORKS). */
export const WIDE_IPV4_LENGTH = 16;

/** A collected IPv6 network with a shorter prefix than this is a wide one (MAX_WIDE_NETWORKS). */
export const WIDE_IPV6_LENGTH = 48;

/** Most wide networks among the collected ones of pods, and among those of services: many of them would be every address there is. */
export const MAX_WIDE_NETWORKS = 16;

/** Longest `logOptions.logFile` of the resource Coordinator: characters. */
export const MAX_LOG_FILE_LENGTH = 255;

/** Highest VLAN id that a device may have; 4095 is reserved (IEEE 802.1Q §9.6). */
export const MAX_VLAN_ID = 4_094;

/** Most members of one bond (`interfaces`): more than a node has ports. */
export const MAX_INTERFACES = 64;

/** Most names in `ifacer.interfaces` of vendor-conf: the NICs of all kinds of nodes. */
export const MAX_IFACER_INTERFACES = 1_024;

/** Longest `bond.options`: UTF-16 units. Every option of the kernel at its longest fits several times. */
export const MAX_BOND_OPTIONS_LENGTH = 4_096;
