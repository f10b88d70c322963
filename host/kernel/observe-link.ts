/**
 * Reads one link of a namespace and its addresses, for CHECK and for comparisons with the registry. Costs well under a
 * millisecond.
 * Effects: a netlink socket in the namespace, for the duration of the call.
 */
import type { Mac } from "../net/mac.ts";
import type { Prefix } from "../net/prefix.ts";
import { decodeMac } from "./mac-bytes.ts";
import { prefixOf } from "./netlink/address/address.ts";
import { findAddresses } from "./netlink/address/requests.ts";
import { readValue } from "./netlink/attribute.ts";
import { createConversation } from "./netlink/conversation.ts";
import { IFF_UP, IFLA_ADDRESS } from "./netlink/link/constants.ts";
import { findLink } from "./netlink/link/requests.ts";
import { openRouteSocket } from "./netlink/socket.ts";

export interface LinkObservation {
  readonly index: number;
  /** Undefined if it is not an Ethernet device (a tunnel). */
  readonly mac: Mac | undefined;
  /** IFF_* */
  readonly flags: number;
  /** IFF_UP; says nothing about the carrier. */
  readonly up: boolean;
  /** Addresses of both families including link-local ones, with host bits, in the kernel's order. */
  readonly addresses: readonly Prefix[];
}

/**
 * Returns the link `ifName` of the namespace at `netnsPath`; undefined if there is no such link. Throws NetnsError if
 * there is no such namespace, NetlinkError if the kernel refuses.
 */
export function observeLink(netnsPath: string, ifName: string): LinkObservation | undefined {
  using socket = openRouteSocket(netnsPath);
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
