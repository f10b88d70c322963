/** The fixed parts of rtnetlink's message families, before the attributes, as in the kernel's structs. */
import { RTM_NEWADDR } from "./address/constants.ts";
import { fixedPart } from "./fixed-part.ts";
import { RTM_NEWLINK } from "./link/constants.ts";
import { RTM_NEWNEIGH } from "./neighbour/constants.ts";
import { RTM_NEWNETCONF } from "./netconf/constants.ts";
import { RTM_NEWROUTE } from "./route/constants.ts";
import { RTM_NEWRULE } from "./rule/constants.ts";

/** linux/rtnetlink.h, struct ifinfomsg. `index`: 0 in requests that identify the link by name. */
export const { encode: encodeLink, decodeWanted: decodeLink } = fixedPart({
  name: "link message",
  type: RTM_NEWLINK,
  typeName: "RTM_NEWLINK",
  bytes: 16,
  fields: {
    /** ARPHRD_*; 0 in requests. */
    deviceType: [2, "uint16"],
    index: [4, "int32"],
    /** IFF_* */
    flags: [8, "uint32"],
    /** Mask of the flags that a request changes. */
    change: [12, "uint32"],
  },
});
export type LinkMessage = ReturnType<typeof decodeLink>;

/** linux/if_addr.h, struct ifaddrmsg. `flags`: the low byte of IFA_F_*; the attribute IFA_FLAGS has all. */
export const { encode: encodeAddress, decode: decodeAddress } = fixedPart({
  name: "address message",
  type: RTM_NEWADDR,
  typeName: "RTM_NEWADDR",
  bytes: 8,
  fields: {
    family: [0, "uint8"],
    prefixLength: [1, "uint8"],
    flags: [2, "uint8"],
    /** RT_SCOPE_* */
    scope: [3, "uint8"],
    index: [4, "uint32"],
  },
});
export type AddressMessage = ReturnType<typeof decodeAddress>;

/** linux/rtnetlink.h, struct rtmsg. `table`: the attribute RTA_TABLE takes precedence. */
export const { encode: encodeRouteMessage, decode: decodeRouteMessage } = fixedPart({
  name: "route message",
  type: RTM_NEWROUTE,
  typeName: "RTM_NEWROUTE",
  bytes: 12,
  fields: {
    family: [0, "uint8"],
    destinationLength: [1, "uint8"],
    sourceLength: [2, "uint8"],
    tos: [3, "uint8"],
    table: [4, "uint8"],
    /** RTPROT_* */
    protocol: [5, "uint8"],
    /** RT_SCOPE_* */
    scope: [6, "uint8"],
    /** RTN_* */
    type: [7, "uint8"],
    /** RTM_F_*, RTNH_F_* */
    flags: [8, "uint32"],
  },
});
export type RouteMessage = ReturnType<typeof decodeRouteMessage>;

/** linux/fib_rules.h, struct fib_rule_hdr. `table`: the attribute FRA_TABLE takes precedence. */
export const { encode: encodeRuleMessage, decode: decodeRuleMessage } = fixedPart({
  name: "rule message",
  type: RTM_NEWRULE,
  typeName: "RTM_NEWRULE",
  bytes: 12,
  fields: {
    family: [0, "uint8"],
    toLength: [1, "uint8"],
    fromLength: [2, "uint8"],
    tos: [3, "uint8"],
    table: [4, "uint8"],
    /** FR_ACT_* */
    action: [7, "uint8"],
    /** FIB_RULE_* */
    flags: [8, "uint32"],
  },
});
export type RuleMessage = ReturnType<typeof decodeRuleMessage>;

/** linux/neighbour.h, struct ndmsg */
export const { encode: encodeNeighbourMessage, decode: decodeNeighbourMessage } = fixedPart({
  name: "neighbour message",
  type: RTM_NEWNEIGH,
  typeName: "RTM_NEWNEIGH",
  bytes: 12,
  fields: {
    family: [0, "uint8"],
    index: [4, "int32"],
    /** NUD_* */
    state: [8, "uint16"],
    /** NTF_* */
    flags: [10, "uint8"],
    /** RTN_* of the address; 0 in requests. */
    type: [11, "uint8"],
  },
});
export type NeighbourMessage = ReturnType<typeof decodeNeighbourMessage>;

/** linux/netconf.h, struct netconfmsg: settings of IPv4 or IPv6. */
export const { encode: encodeNetconf, decode: decodeNetconf } = fixedPart({
  name: "netconf message",
  type: RTM_NEWNETCONF,
  typeName: "RTM_NEWNETCONF",
  bytes: 4,
  fields: { family: [0, "uint8"] },
});
export type NetconfMessage = ReturnType<typeof decodeNetconf>;
