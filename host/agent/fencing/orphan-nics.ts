/**
 * The network namespace of an orphan: finding it when the journal has no path of it, and taking addresses off its NICs and setting those down, so that
 * the orphan neither answers for the addresses nor sends from them.
 */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { ENODEV } from "../../kernel/errno.ts";
import { type Address, addressOf } from "../../kernel/netlink/address/address.ts";
import { deleteAddress, listAddresses } from "../../kernel/netlink/address/requests.ts";
import { createConversation } from "../../kernel/netlink/conversation.ts";
import { unlessRefused } from "../../kernel/netlink/error.ts";
import { IFF_LOOPBACK } from "../../kernel/netlink/link/constants.ts";
import { linkOf } from "../../kernel/netlink/link/link.ts";
import { listLinks, setLink } from "../../kernel/netlink/link/requests.ts";
import { openRouteSocket } from "../../kernel/netlink/socket.ts";
import { isOwnNetns, NetnsError } from "../../kernel/netns.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { NO_NAMESPACE } from "./netns-status.ts";

interface OrphanNics {
  /** Path of the orphan's network namespace, as its ADD gave it. */
  readonly netns: string;
  readonly ips: readonly Ip[];
  /**
   * Whether a virtual machine may run in the pod. It has the address inside, where no link of the pod shows it: all links of the pod are set down then.
   */
  readonly hasMachine: boolean;
}

/**
 * Returns the names of the links that were set down; none if no link has one of the addresses. Undefined if the path is no network namespace of a pod.
 * Throws NetlinkError when the kernel refuses, NetnsError when the namespace cannot be entered.
 */
export function fenceNics({ netns, ips, hasMachine }: OrphanNics): readonly string[] | undefined {
  try {
    return isOwnNetns(netns) ? undefined : fenceIn(netns, ips, hasMachine && !isReused(netns));
  } catch (error) {
    if (error instanceof NetnsError && NO_NAMESPACE.has(error.errno)) return undefined;
    throw error;
  }
}

/** Process IDs are reused: such a namespace is recognised only by an address. */
function isReused(netns: string): boolean {
  return netns.startsWith("/proc/");
}

function fenceIn(netns: string, ips: readonly Ip[], isAll: boolean): readonly string[] {
  using socket = openRouteSocket(netns);
  const conversation = createConversation(socket);
  const addresses = listAddresses(conversation).map(addressOf).filter(isWanted(ips));
  const links = listLinks(conversation)
    .map(linkOf)
    .filter(({ flags }) => (flags & IFF_LOOPBACK) === 0);
  const fenced = links.filter(({ index }) => isAll || addresses.some(({ link }) => link === index));
  for (const address of addresses) deleteAddress(conversation, address);
  for (const { index } of fenced) unlessRefused([ENODEV], () => setLink(conversation, index, { up: false }));
  return fenced.map(({ name }) => name);
}

function isWanted(ips: readonly Ip[]) {
  return (address: Address | undefined): address is Address =>
    address !== undefined && ips.some((ip) => equalIp(ip, address.prefix.ip));
}

/** The directory of containerd and CRI-O. */
const USUAL_FOLDER = "/run/netns";

/**
 * Returns the path of the first namespace that has the address and is not one of `known`, the namespaces of the journal's attachments; their directories
 * are searched. Undefined if there is none.
 */
export function findNetns(ip: Ip, known: readonly string[]): string | undefined {
  const taken = new Set(known.map(resolve));
  const folders = new Set([...known.map(dirname), USUAL_FOLDER].map(resolve));
  for (const folder of folders) {
    if (folder.startsWith("/proc/")) continue;
    const found = list(folder).find((path) => !taken.has(path) && hasAddress(path, ip));
    if (found !== undefined) return found;
  }
  return undefined;
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function resolve(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function hasAddress(netns: string, ip: Ip): boolean {
  try {
    using socket = openRouteSocket(netns);
    return listAddresses(createConversation(socket))
      .map(addressOf)
      .some((address) => address !== undefined && equalIp(address.prefix.ip, ip));
  } catch (error) {
    if (error instanceof NetnsError) return false;
    throw error;
  }
}
