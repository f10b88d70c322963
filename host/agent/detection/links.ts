/**
 * The links that detection needs: a pod's NIC, the node's link under it or to a pool's segment, and an old sandbox's
 * NIC that still has the address.
 */

import { DetectionError } from "../../coordinator/detection-error.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { macOfAddress } from "../../coordinator/plan/plan-mac.ts";
import type { ProbeLink } from "../../coordinator/probe.ts";
import { addressesIn } from "../../kernel/netlink/address/address.ts";
import { deleteAddress, findAddresses } from "../../kernel/netlink/address/requests.ts";
import { type Conversation, createConversation } from "../../kernel/netlink/conversation.ts";
import { IFF_NOARP } from "../../kernel/netlink/link/constants.ts";
import { kindName } from "../../kernel/netlink/link/kind.ts";
import type { Link } from "../../kernel/netlink/link/link.ts";
import { readLink, readLinkByIndex } from "../../kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../kernel/netlink/socket.ts";
import { isNetnsError, isSameNetns, NetnsError, OWN_NETNS, readNetnsIdentity } from "../../kernel/netns.ts";
import { observeLink } from "../../kernel/observe-link.ts";
import { writeSysctl } from "../../kernel/sysctl.ts";
import { insteadOf, tryOr } from "../../lib/try-or.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { firstIp } from "../../net/prefix.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";

/** Returns the node's link of that name; undefined if it cannot probe: it is missing, down, or not Ethernet. */
export function findNodeLink(name: string): ProbeLink | undefined {
  const found = name === "" ? undefined : observeLink(OWN_NETNS, name);
  if (found?.mac === undefined || !found.up) return undefined;
  return { netnsPath: OWN_NETNS, index: found.index, name, mac: found.mac };
}

/**
 * Returns the name of the node's link through which the pod's NIC reaches its segment: the parent of macvlan, ipvlan
 * or vlan, the bridge of the other end of a veth. "" if there is none on the node.
 */
export function findParentName(netnsPath: string, ifName: string): string {
  const nic = findIn(netnsPath, (conversation) => readLink(conversation, ifName));
  if (nic?.parent === undefined || nic.parentNetnsId === undefined) return "";
  const under = findOnNode(nic.parent);
  if (nic.kind === undefined || kindName(nic.kind) !== "veth") return under?.name ?? "";
  return (under?.master === undefined ? undefined : findOnNode(under.master)?.name) ?? "";
}

/**
 * Returns the link on which the NIC's segment is probed: the NIC itself, but for an ipvlan the node's link under it.
 * An ipvlan receives only unicast ARP for one of its addresses, so the answer to a probe from 0.0.0.0 stays at the
 * parent, whose MAC it has. An ipvlan without ARP (mode L3) is returned itself, and cannot be probed. Throws
 * DetectionError when the parent is not a link of the node that is up; NetnsError, NetlinkError.
 */
export function findAskingLink(nic: ProbeLink): ProbeLink {
  const { netnsPath, name, kind } = nic;
  if (kind !== "ipvlan") return nic;
  const link = findIn(netnsPath, (conversation) => readLink(conversation, name));
  if (link === undefined || (link.flags & IFF_NOARP) !== 0) return nic;
  const parent = findParentName(netnsPath, name);
  const asking = findNodeLink(parent);
  if (asking !== undefined) return asking;
  const what = parent === "" ? "which is not on the node" : `"${parent}", which is down`;
  throw new DetectionError("link", name, `it is an ipvlan, which is probed on its parent link, ${what}`);
}

function findOnNode(index: number): Link | undefined {
  return findIn(OWN_NETNS, (conversation) => readLinkByIndex(conversation, index));
}

function findIn(netnsPath: string, find: (conversation: Conversation) => Link | undefined): Link | undefined {
  using socket = openRouteSocket(netnsPath);
  return find(createConversation(socket));
}

/** A NIC that does not exist yet is left as it will be. */
export function refuseDefaults(netns: string, ifName: string): void {
  tryOr(() => writeSysctl(netns, `ipv6/conf/${ifName}/accept_ra_defrtr`, "0"), undefined);
}

type WithdrawnNic = Pick<Allocation, "containerId" | "netns" | "netnsCookie" | "ifName" | "ip" | "mac">;

/**
 * Takes the address of a released or replaced attachment off the NIC that still has it, unless that is `current`.
 * Returns that NIC's MAC, which is not another machine's; undefined if no NIC has the address.
 */
export function withdrawAddress(
  { containerId, netns, netnsCookie, ifName, ip, mac }: WithdrawnNic,
  current: { readonly netns: string; readonly ifName: string },
): Mac | undefined {
  try {
    if (netns === undefined || (ifName === current.ifName && leadToSame(netns, current.netns))) return undefined;
    // Another namespace, at a path that is used again.
    if (netnsCookie !== undefined && readNetnsIdentity(netns).cookie !== netnsCookie) return undefined;
    using socket = openRouteSocket(netns);
    const conversation = createConversation(socket);
    const link = readLink(conversation, ifName);
    if (link === undefined) return undefined;
    const addresses = addressesIn(findAddresses(conversation, link.index));
    const left = addresses.find(({ prefix }) => equalIp(prefix.ip, ip));
    const ips = addresses.map(({ prefix }) => prefix.ip);
    // A different link of that name, in a path that was used again: leave it.
    const isOwn = mayHaveMac(link, mac, ips) || hasPair(conversation, containerId);
    if (left === undefined || !isOwn) return undefined;
    deleteAddress(conversation, left);
    return link.mac;
  } catch (error) {
    if (error instanceof NetnsError) return undefined;
    throw error;
  }
}

/** Returns whether the MAC is its ADD's, or derived from one of its addresses by the coordinator (podMACPrefix). */
function mayHaveMac({ mac: found }: Link, recorded: Mac | undefined, ips: readonly Ip[]): boolean {
  if (recorded === undefined || found === recorded) return true;
  return found !== undefined && ips.some((ip) => macOfAddress(found.slice(0, "0a:1b".length), ip) === found);
}

/**
 * Returns whether the namespace has the attachment's end of a pair: then another plugin has changed the MAC of its
 * NIC, as `tuning` does.
 */
function hasPair(conversation: Conversation, containerId: string): boolean {
  const { pod } = nameVeth(containerId);
  return readLink(conversation, pod.name)?.mac === pod.mac;
}

function leadToSame(one: string, other: string): boolean {
  return one === other || isSameNetns(readNetnsIdentity(one), readNetnsIdentity(other));
}

type Place = Pick<Allocation, "pool" | "space" | "ip" | "prefixLength">;

interface PoolLinkDeps {
  readonly registry: Pick<Registry, "list">;
  /** Returns "" if there is none on the node. Throws NetnsError when the namespace is gone. */
  readonly findParentName: (netns: string, ifName: string) => string;
  readonly findNodeLink: (name: string) => ProbeLink | undefined;
}

/**
 * Returns the node's link under a NIC that has an address of the pool, or else of another pool with the same prefix
 * and address space: through it the pool's segment is probed for an address of a lost node (conflict). Undefined if
 * there is no such NIC whose link is up.
 */
export async function findPoolLink(deps: PoolLinkDeps, wanted: Place): Promise<ProbeLink | undefined> {
  const near: Allocation[] = [];
  for await (const row of listRows(deps.registry)) {
    if (row.state !== "Bound" || row.netns === undefined || !isOnSegment(row, wanted)) continue;
    if (row.pool === wanted.pool) near.unshift(row);
    else near.push(row);
  }
  const tried = new Set<string>();
  for (const { netns = "", ifName } of near) {
    // "" also for a pod that is being deleted and has lost its namespace.
    const name = insteadOf(isNetnsError, "", () => deps.findParentName(netns, ifName));
    if (name === "" || tried.has(name)) continue;
    tried.add(name);
    const link = deps.findNodeLink(name);
    if (link !== undefined) return link;
  }
  return undefined;
}

function isOnSegment(row: Place, wanted: Place): boolean {
  if (row.space !== wanted.space || row.ip.family !== wanted.ip.family) return false;
  if (row.pool === wanted.pool) return true;
  const [one, other] = [row, wanted].map(({ ip, prefixLength: length }) => firstIp({ ip, length }).value);
  return row.prefixLength === wanted.prefixLength && one === other;
}
