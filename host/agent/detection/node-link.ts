/**
 * The links that detection needs besides the engine: a pod's NIC before and while it gets its address, the node's link under it,
 * and an old sandbox's NIC that still has the address.
 * Handed to verify-addresses.ts and probe-quarantined.ts by open-detection.ts; called by the coordinator too.
 * Effects: netlink sockets for the time of a call; {@link withdrawAddress} takes an address off a link.
 */
import { DetectionError } from "../../coordinator/detection-error.ts";
import { macOfAddress } from "../../coordinator/plan/plan-mac.ts";
import type { ProbeLink } from "../../coordinator/probe.ts";
import { addressOf } from "../../kernel/netlink/address/address.ts";
import { deleteAddress, findAddresses } from "../../kernel/netlink/address/requests.ts";
import { type Conversation, createConversation } from "../../kernel/netlink/conversation.ts";
import { IFF_NOARP } from "../../kernel/netlink/link/constants.ts";
import { kindName } from "../../kernel/netlink/link/kind.ts";
import { type Link, linkOf } from "../../kernel/netlink/link/link.ts";
import type { LinkMessage } from "../../kernel/netlink/link/message.ts";
import { findLink, findLinkByIndex } from "../../kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../kernel/netlink/socket.ts";
import { NetnsError, OWN_NETNS, readNetnsIdentity } from "../../kernel/netns.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation } from "../../registry/registry.ts";

/** The link of the node by that name, to ask through; undefined when it is gone, off, or no Ethernet. */
export function findNodeLink(name: string): ProbeLink | undefined {
  const found = name === "" ? undefined : observeLink(OWN_NETNS, name);
  if (found?.mac === undefined || !found.up) return undefined;
  return { netnsPath: OWN_NETNS, index: found.index, name, mac: found.mac };
}

/**
 * The name of the node's link through which the pod's NIC reaches its segment: the parent of macvlan, ipvlan or vlan, the bridge of the
 * other end of a veth. "" when there is none on the node.
 */
export function findParentName(netnsPath: string, ifName: string): string {
  const nic = findIn(netnsPath, (conversation) => findLink(conversation, ifName));
  if (nic?.parent === undefined || nic.parentNetnsId === undefined) return "";
  const under = findOnNode(nic.parent);
  if (nic.kind === undefined || kindName(nic.kind) !== "veth") return under?.name ?? "";
  return (under?.master === undefined ? undefined : findOnNode(under.master)?.name) ?? "";
}

/**
 * The link on which the NIC's segment is asked: the NIC itself, but for an ipvlan the node's link under it. An ipvlan gets only the unicast
 * ARP that is for one of its addresses, so the answer to a question from 0.0.0.0 stays at the parent, whose MAC it has. One that does without
 * ARP (mode L3) is given back, and cannot be asked.
 * Throws DetectionError when the parent is not a link of the node that is switched on; NetnsError, NetlinkError.
 */
export function findAskingLink(nic: ProbeLink): ProbeLink {
  const { netnsPath, name, kind } = nic;
  if (kind !== "ipvlan") return nic; // nothing more to find out for the many
  const link = findIn(netnsPath, (conversation) => findLink(conversation, name));
  if (link === undefined || (link.flags & IFF_NOARP) !== 0) return nic;
  const parent = findParentName(netnsPath, name);
  const asking = findNodeLink(parent);
  if (asking !== undefined) return asking;
  const what = parent === "" ? "which is not on the node" : `"${parent}", which is down`;
  throw new DetectionError("link", name, `it is an ipvlan, and is asked for on its parent link, ${what}`);
}

function findOnNode(index: number): Link | undefined {
  return findIn(OWN_NETNS, (conversation) => findLinkByIndex(conversation, index));
}

function findIn(netnsPath: string, find: (conversation: Conversation) => LinkMessage | undefined): Link | undefined {
  using socket = openRouteSocket(netnsPath);
  const found = find(createConversation(socket));
  return found && linkOf(found);
}

/**
 * Takes the address of a released or replaced attachment off the NIC that still has it, if that is not `current`.
 * Gives that NIC's MAC, which is not foreign; undefined when nothing of it is left.
 */
export function withdrawAddress(
  { netns, ifName, ip, mac }: Pick<Allocation, "netns" | "ifName" | "ip" | "mac">,
  current: { readonly netns: string; readonly ifName: string },
): Mac | undefined {
  try {
    if (netns === undefined || (ifName === current.ifName && isSameNetns(netns, current.netns))) return undefined;
    using socket = openRouteSocket(netns);
    const conversation = createConversation(socket);
    const found = findLink(conversation, ifName);
    const link = found && linkOf(found);
    if (link === undefined) return undefined;
    const addresses = findAddresses(conversation, link.index)?.map(addressOf) ?? [];
    const left = addresses.find((address) => address !== undefined && equalIp(address.prefix.ip, ip));
    const ips = addresses.filter((address) => address !== undefined).map(({ prefix }) => prefix.ip);
    // Another link by that name in a path that was used again: not ours to touch.
    if (left === undefined || !mayHaveMac(link, mac, ips)) return undefined;
    deleteAddress(conversation, left);
    return link.mac;
  } catch (error) {
    if (error instanceof NetnsError) return undefined;
    throw error;
  }
}

/** That of its ADD, or one that the coordinator has made of one of its addresses since (podMACPrefix). */
function mayHaveMac({ mac: found }: Link, recorded: Mac | undefined, ips: readonly Ip[]): boolean {
  if (recorded === undefined || found === recorded) return true;
  return found !== undefined && ips.some((ip) => macOfAddress(found.slice(0, "0a:1b".length), ip) === found);
}

function isSameNetns(one: string, other: string): boolean {
  if (one === other) return true;
  const [a, b] = [readNetnsIdentity(one), readNetnsIdentity(other)];
  return a.device === b.device && a.inode === b.inode;
}
