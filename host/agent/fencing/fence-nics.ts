/**
 * Takes the addresses of an orphan off its NICs and sets those down: from then on the orphan neither answers for them nor sends from them.
 * Effects: changes the orphan's network namespace.
 */
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
import { NO_NAMESPACE } from "../gc/live-status.ts";

interface OrphanNics {
  /** Path of the orphan's network namespace, as its ADD gave it. */
  readonly netns: string;
  readonly ips: readonly Ip[];
  /**
   * A machine may run in the pod. It takes the address into itself, so that the link in front of it does not show it: all links of the pod are set
   * down then.
   */
  readonly hasMachine: boolean;
}

/**
 * Names of the links that were set down; none when no link of the namespace has an address. Undefined when the path leads into no namespace of a
 * pod. Throws NetlinkError when the kernel refuses, NetnsError when it does not let us in.
 */
export function fenceNics({ netns, ips, hasMachine }: OrphanNics): readonly string[] | undefined {
  try {
    return isOwnNetns(netns) ? undefined : fenceIn(netns, ips, hasMachine && !isReused(netns));
  } catch (error) {
    if (error instanceof NetnsError && NO_NAMESPACE.has(error.errno)) return undefined;
    throw error;
  }
}

/** Process numbers come again: only an address tells whose namespace it is. */
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
