/**
 * Changes of the node's network that may take away pods' state on the node. The mirror reports those of rules, routes
 * and links, which it follows anyway; this file reports those of neighbours, sysctls and nf_tables. Filters in the
 * kernel drop all other notifications, such as each neighbour that a router answers for, and each of 5,000 services
 * that a service proxy writes.
 */
import {
  ACCEPT,
  assembleFilter,
  type Instruction,
  JUMP_EQUAL,
  LOAD_HALF,
  LOAD_WORD,
  REJECT,
  requireValue,
} from "./bpf.ts";
import { EPROTONOSUPPORT } from "./errno.ts";
import { decodeString, readValue } from "./netlink/attribute.ts";
import { NETLINK_NETFILTER } from "./netlink/constants.ts";
import { type NetlinkError, unlessRefused } from "./netlink/error.ts";
import { decodeNeighbourMessage, decodeNetconf } from "./netlink/families.ts";
import type { ReceivedMessage } from "./netlink/message.ts";
import { type Monitor, openMonitor, RTNLGRP_IPV4_NETCONF, RTNLGRP_NEIGH } from "./netlink/monitor.ts";
import { NUD_FAILED, RTM_NEWNEIGH } from "./netlink/neighbour/constants.ts";
import { RTM_NEWNETCONF } from "./netlink/netconf/constants.ts";
import { netconfOf } from "./netlink/netconf/netconf.ts";
import { NFT_MSG_NEWGEN, NFTA_GEN_PROC_NAME } from "./netlink/nftables/constants.ts";
import { decodeNft } from "./netlink/nftables/message.ts";
import type { NetnsHandle } from "./netns.ts";

/** A change, possibly by other software. */
export type NodeChange =
  /** A rule was added or deleted. `protocol`: RTPROT_*. `port`: of the program's socket; 0 for the kernel. */
  | {
      readonly kind: "rule";
      readonly isNew: boolean;
      readonly preference: number;
      readonly protocol: number;
      readonly port: number;
    }
  /**
   * A route of a mirrored table was deleted or replaced; or a neighbour was deleted; or a program added or deleted a
   * route of the kernel's own table. `link`: index.
   */
  | { readonly kind: "route" | "neighbour"; readonly link: number | undefined; readonly port: number }
  /** A link was set down, perhaps to be deleted. `type`: `veth`, `vlan` …; "" for a physical device. */
  | { readonly kind: "link"; readonly link: number; readonly type: string; readonly port: number }
  /** rp_filter of a link was written, or whether it forwards IPv4. */
  | {
      readonly kind: "setting";
      readonly link: number;
      readonly rpFilter: number | undefined;
      readonly forwarding: number | undefined;
    }
  /** The ruleset of nf_tables has a new generation. `program`: name of the process; "" if the kernel does not say. */
  | { readonly kind: "ruleset"; readonly program: string }
  /** An address that is not link-local came or went. `linkName`: undefined if it is unknown. */
  | { readonly kind: "address"; readonly isNew: boolean; readonly linkName: string | undefined }
  /** Notifications were lost, or the pair of a running pod has gone: anything may have changed. */
  | { readonly kind: "unknown" };

/** linux/netfilter/nfnetlink.h */
const NFNLGRP_NFTABLES = 7;

/** Offsets in a message's header. */
const LENGTH_AT = 0;
const TYPE_AT = 4;
const PORT_AT = 12;
/** ndm_state of a neighbour message. */
const STATE_AT = 24;
/**
 * A netconf message of one setting: header, fixed part, index of the link, value. The kernel reports all settings of a
 * new link in one.
 */
const ONE_SETTING_BYTES = 36;

/**
 * Returns the number as a program loads it: big-endian, whereas the kernel's messages are little-endian on all
 * processors that Berth is built for.
 */
const half = (value: number): number => ((value & 0xff) << 8) | (value >> 8);
const word = (value: number): number => half(value & 0xffff) * 0x1_0000 + half(value >>> 16);

/** Accepts neighbours that a program deleted: they fail first (net/core/neighbour.c); and single settings. */
function routeFilter(): Uint8Array {
  const neighbour: Instruction[] = [
    [LOAD_WORD, 0, 0, PORT_AT],
    [JUMP_EQUAL, 2, 0, 0],
    [LOAD_HALF, 0, 0, STATE_AT],
    [JUMP_EQUAL, 1, 0, half(NUD_FAILED)],
    REJECT,
    ACCEPT,
  ];
  return assembleFilter([
    [LOAD_HALF, 0, 0, TYPE_AT],
    [JUMP_EQUAL, 0, neighbour.length, half(RTM_NEWNEIGH)],
    ...neighbour,
    ...requireValue([LOAD_HALF, 0, 0, TYPE_AT], [half(RTM_NEWNETCONF)]),
    ...requireValue([LOAD_WORD, 0, 0, LENGTH_AT], [word(ONE_SETTING_BYTES)]),
    ACCEPT,
  ]);
}

/**
 * Accepts the last message of a transaction's report (net/netfilter/nf_tables_api.c, nf_tables_gen_notify), a datagram
 * of its own.
 */
function generationFilter(): Uint8Array {
  return assembleFilter([...requireValue([LOAD_HALF, 0, 0, TYPE_AT], [half(NFT_MSG_NEWGEN)]), ACCEPT]);
}

/** Returns undefined for a message that no program caused. */
function changeOf(message: ReceivedMessage): NodeChange | undefined {
  if (message.type === RTM_NEWNEIGH) {
    const { index: link } = decodeNeighbourMessage(message);
    return { kind: "neighbour", link, port: message.port };
  }
  if (message.type === RTM_NEWNETCONF) {
    const { index: link, rpFilter, forwarding } = netconfOf(decodeNetconf(message));
    // Below zero: the settings of `all` and `default`.
    if (link === undefined || link < 0 || (rpFilter ?? forwarding) === undefined) return undefined;
    return { kind: "setting", link, rpFilter, forwarding };
  }
  const { attributes } = decodeNft(message, NFT_MSG_NEWGEN);
  return { kind: "ruleset", program: readValue(attributes, NFTA_GEN_PROC_NAME, decodeString) ?? "" };
}

/**
 * Calls `listener` for each change of a neighbour, a setting or the ruleset from now on. A kernel without nf_tables
 * reports no ruleset. Throws NetlinkError if the kernel refuses a socket. `gatherMs`: time for which further
 * notifications wait after one.
 */
export function watchNodeChanges(
  netns: NetnsHandle,
  options: { readonly gatherMs: number; readonly bufferBytes?: number },
  listener: (change: NodeChange) => void,
): Disposable {
  using opened = new DisposableStack();
  const handler = {
    message: (message: ReceivedMessage): void => {
      const change = changeOf(message);
      if (change !== undefined) listener(change);
    },
    lost: (_error: NetlinkError): void => listener({ kind: "unknown" }),
  };
  const open = (protocol: Parameters<typeof openMonitor>[1]): Monitor =>
    openMonitor(netns, { ...protocol, ...options }, handler);
  opened.use(open({ groups: [RTNLGRP_NEIGH, RTNLGRP_IPV4_NETCONF], filter: routeFilter() }));
  const ofRuleset = { protocol: NETLINK_NETFILTER, groups: [NFNLGRP_NFTABLES], filter: generationFilter() };
  opened.use(unlessRefused([EPROTONOSUPPORT], () => open(ofRuleset)));
  return opened.move();
}
