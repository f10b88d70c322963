/**
 * The numbers by which the kernel knows what is the coordinator's: protocols, tables, preferences, marks, groups, names.
 * Called by the planners. docs/coordinator.md explains them; they are part of what an operator sees in `ip` and `nft`.
 */
import { POD_TABLES_FIRST, POD_TABLES_LAST } from "../../config/coordinator-conf.ts";

/** Who made it (RTPROT_*), on every route and rule of Berth's. iproute2 has no name for it, nor has any routing daemon. */
export const BERTH_PROTOCOL = 98;

/** The pod's end of the pair that leads to its node. */
export const POD_VETH = "veth0";

/** In the pod: what came in through the pair goes back through it. Used for nothing else. */
export const REPLY_TABLE = POD_TABLES_FIRST;

/** In the pod: of its first NIC; each other NIC has one of those that follow. */
export const FIRST_NIC_TABLE = POD_TABLES_FIRST + 1;

export const LAST_NIC_TABLE = POD_TABLES_LAST;

/** On the host, before the kernel's rule for l3mdev at 1000. */
export const HOST_RULE_PREFERENCE = 900;

/** In the pod: marked replies, before the rules of the NICs. */
export const REPLY_RULE_PREFERENCE = 900;

export const NIC_RULE_PREFERENCE = 910;

/** One bit, in the pod, on connections and packets; the other bits are others'. */
export const REPLY_MARK = 0x0100_0000;

/**
 * Of host ends whose connections are masqueraded when they leave the node (IFLA_GROUP): all of them, or those that no service
 * translated, where kube-proxy sees to the rest.
 */
export const SNAT_GROUPS = { all: 98, untranslated: 97, none: 0 } as const;

/** Name of Berth's table of nf_tables, in the pod and on the host. */
export const NFT_TABLE = "berth";
