/**
 * Reads one link of a namespace and its addresses, for CHECK and for comparisons with the registry. Costs well under a
 * millisecond.
 * Effects: a netlink socket in the namespace, for the duration of the call.
 */
import type { Prefix } from "../net/prefix.ts";
import { prefixOf } from "./netlink/address/address.ts";
import { findAddresses } from "./netlink/address/requests.ts";
import { createConversation } from "./netlink/conversation.ts";
import type { Link } from "./netlink/link/link.ts";
import { readLink } from "./netlink/link/requests.ts";
import { openRouteSocket } from "./netlink/socket.ts";

export interface LinkObservation extends Pick<Link, "index" | "mac" | "flags" | "up"> {
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
  const link = readLink(conversation, ifName);
  const addresses = link && findAddresses(conversation, link.index);
  if (link === undefined || addresses === undefined) return undefined;
  return { ...link, addresses: addresses.map(prefixOf).filter((prefix) => prefix !== undefined) };
}
