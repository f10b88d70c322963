/**
 * The numbers and names that mark the coordinator's objects in the kernel: protocols, tables, preferences, marks,
 * groups. Operators see them in `ip` and `nft`; docs/develop/coordinator.md explains them.
 */
import { POD_TABLES_FIRST, POD_TABLES_LAST } from "../../config/coordinator-conf.ts";

/** The protocol (RTPROT_*) of Berth's routes and rules, which neither iproute2 nor a routing daemon uses. */
export const BERTH_PROTOCOL = 98;

/** Name of the pod's end of the pair to its node. */
export const POD_VETH = "veth0";

/** In the pod: table that sends replies to connections over the pair back through it. If taken, the next free one. */
export const FIRST_REPLY_TABLE = POD_TABLES_FIRST;

/** In the pod: table of its first NIC; the other NICs have the next ones. If taken, the next free table. */
export const FIRST_NIC_TABLE = POD_TABLES_FIRST + 1;

export const LAST_NIC_TABLE = POD_TABLES_LAST;

/** On the host; before the kernel's rule for l3mdev at 1000. */
export const HOST_RULE_PREFERENCE = 900;

/** In the pod; for marked replies, before the rules of the NICs. */
export const REPLY_RULE_PREFERENCE = 900;

export const NIC_RULE_PREFERENCE = 910;

/** In the pod, before all rules but the kernel's local one: jumps to Berth's rules, past other plugins'. */
export const GUARD_RULE_PREFERENCE = 0;

/** In the pod, after the kernel's rules: the default route of a NIC whose routes another plugin moves away. */
export const DEFAULT_RULE_PREFERENCE = 33_000;

/** One bit, in the pod, on connections and packets; other software may use the other bits. */
export const REPLY_MARK = 0x0100_0000;

/**
 * Groups (IFLA_GROUP) of host ends whose connections are masqueraded when they leave the node: all connections, or
 * those that no service translated if kube-proxy masquerades the rest.
 */
export const SNAT_GROUPS = { all: 98, untranslated: 97, none: 0 } as const;

/**
 * Group (IFLA_GROUP) of host ends whose pod is detached: they are down until they are deleted. The letters "bert", so
 * that no other software uses it by accident.
 */
export const RETIRED_GROUP = 0x6265_7274;

/** Name of Berth's nf_tables table, in the pod and on the host. */
export const NFT_TABLE = "berth";
