/**
 * What is on a link of a namespace, read from the kernel: the question of CHECK, and of whoever compares wish with fact.
 * Called by the agent. Changes nothing; costs well under a millisecond.
 * Effects: a netlink socket in the namespace, for the time of the call.
 */
import type { Mac } from "../net/mac.ts";
import type { Prefix } from "../net/prefix.ts";
import { decodeMac } from "./mac-bytes.ts";
import { loadNative, type Native } from "./native.ts";
import { prefixOf } from "./netlink/address/message.ts";
import { findAddresses } from "./netlink/address/requests.ts";
import { readValue } from "./netlink/attribute.ts";
import { createConversation } from "./netlink/conversation.ts";
import { IFF_UP, IFLA_ADDRESS } from "./netlink/link/constants.ts";
import { findLink } from "./netlink/link/requests.ts";
import { openRouteSocket } from "./netlink/socket.ts";

export interface LinkObservation {
  readonly index: number;
  /** Undefined for a link without an Ethernet address (a tunnel). */
  readonly mac: Mac | undefined;
  /** IFF_* */
  readonly flags: number;
  /** Whether it is switched on (IFF_UP), not whether there is a carrier. */
  readonly up: boolean;
  /** Both families, with link-local ones, host bits kept, in the kernel's order. */
  readonly addresses: readonly Prefix[];
}

/**
 * Observes the link `ifName` in the namespace at `netnsPath`; undefined when there is no such link.
 * Throws NetnsError when there is no such namespace, NetlinkError when the kernel refuses.
 */
export function observeLink(
  netnsPath: string,
  ifName: string,
  native: Native = loadNative(),
): LinkObservation | undefined {
  using socket = openRouteSocket(netnsPath, native);
  const conversation = createConversation(socket);
  const link = findLink(conversation, ifName);
  const addresses = link && findAddresses(conversation, link.index);
  if (link === undefined || addresses === undefined) return undefined;
  const { index, flags } = link;
  const prefixes = addresses.map(prefixOf).filter((prefix) => prefix !== undefined);
  return {
    index,
    mac: readValue(link.attributes, IFLA_ADDRESS, decodeMac),
    flags,
    up: (flags & IFF_UP) !== 0,
    addresses: prefixes,
  };
}
