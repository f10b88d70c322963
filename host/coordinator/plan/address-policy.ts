/**
 * Which addresses a pod may bring. Definitions are written by tenants, and any IPAM may stand in them: an address of a pod is one that the
 * whole node reaches over the pair, before all of its other routes.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { IFA_F_PERMANENT } from "../../kernel/netlink/address/constants.ts";
import { RT_SCOPE_UNIVERSE } from "../../kernel/netlink/route/constants.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import { type Prefix, parsePrefix, prefixContains } from "../../net/prefix.ts";
import type { AddressState } from "../../plan/state.ts";
import { includesIp, uniqueIps } from "./own-objects.ts";
import type { PlanInput } from "./plan-input.ts";

/** Most addresses of one pod, those of all its NICs and of router advertisements together. Each is a route and a neighbour of the node. @limit */
export const MAX_POD_ADDRESSES = 256;

/** No machine's: this host, loopback, multicast, reserved, link-local of IPv6, IPv4 in IPv6's clothes. */
const SPECIAL_PREFIXES: readonly Prefix[] = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "224.0.0.0/3",
  "::/128",
  "::1/128",
  "::ffff:0:0/96",
  "fe80::/10",
  "ff00::/8",
].flatMap((text) => parsePrefix(text) ?? []);

function findHarm(ip: Ip, { observed, gateways = [] }: PlanInput): string | undefined {
  if (SPECIAL_PREFIXES.some((prefix) => prefixContains(prefix, ip))) return "no machine can have it";
  const own = observed.host.addresses.find(({ prefix }) => equalIp(prefix.ip, ip));
  if (own !== undefined) return `the node has it on "${own.link}"`;
  return includesIp(gateways, ip) ? "it is a gateway of the node" : undefined;
}

/**
 * Throws CniError 106 when the name of the pair, 44 bits of a hash, is that of a link with another MAC address, which are 46 other bits of it:
 * of another container, or of somebody else.
 */
export function requireFreeVethName({ observed, pair }: PlanInput): void {
  const found = observed.host.links.find(({ name }) => name === pair.host.name);
  if (found === undefined || found.mac === pair.host.mac) return;
  const whose = found.alias === "" ? "" : ` (${JSON.stringify(found.alias)})`;
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `The node has a link "${found.name}"${whose} that is not of this container; give it another name, or start the pod again`,
  );
}

/** Throws CniError 106 for an address that would take the node's own traffic, and for more than one pod can need. */
export function requireSafeAddresses(situation: PlanInput, ips: readonly Ip[]): void {
  const { ifName, observed } = situation;
  const count = observed.pod.addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).length;
  if (Math.max(count, ips.length) > MAX_POD_ADDRESSES) {
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `The pod of interface "${ifName}" has ${Math.max(count, ips.length)} addresses; each is a route of the node, ` +
        `and ${MAX_POD_ADDRESSES} is the most that a pod may have`,
    );
  }
  for (const ip of ips) {
    const reason = findHarm(ip, situation);
    if (reason === undefined) continue;
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `Interface "${ifName}" has address ${formatIp(ip)}, which the node would look for in the pod: ${reason}; give the pod another one`,
    );
  }
}

/** Addresses for which the node may route its own traffic to the pod. */
export interface RoutableAddresses {
  /** Allocated to the NIC by Berth, with the length of the pool's subnet. */
  readonly allocated: readonly Prefix[];
  /** `hostRouteCIDR` of vendor-conf: where the administrator lets other IPAM plugins choose. */
  readonly allowed: readonly Prefix[];
}

/** A router's advertisement made it, in a subnet of which Berth has given the NIC an address. */
function isLearnedInPoolSubnet({ prefix, flags }: AddressState, { allocated }: RoutableAddresses): boolean {
  return (flags & IFA_F_PERMANENT) === 0 && allocated.some((own) => prefixContains(own, prefix.ip));
}

/**
 * The NIC's addresses that get a route of the node, and warnings about the others on the NIC. Throws CniError 106 for an address that the main
 * plugin reports and the node must not route: the pod would start, and neither its node nor a service could answer it.
 */
export function selectRoutable(
  { addresses, ifName, observed, routable }: PlanInput,
  own: readonly Ip[],
): { ips: readonly Ip[]; warnings: readonly string[] } {
  const all = uniqueIps([...addresses, ...own]);
  if (routable === undefined) return { ips: all, warnings: [] };
  const isRoutable = (ip: Ip): boolean =>
    routable.allocated.some((each) => equalIp(each.ip, ip)) ||
    routable.allowed.some((network) => prefixContains(network, ip));
  const forbidden = addresses.find((ip) => !isRoutable(ip));
  if (forbidden !== undefined) {
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `Interface "${ifName}" has address ${formatIp(forbidden)}, which Berth has not allocated to it, and the node would send its own ` +
        'traffic for that address to the pod; use the IPAM plugin "berth", or add its network to "hostRouteCIDR" of vendor-conf',
    );
  }
  const learned = observed.pod.addresses.filter(
    (address) => address.link === ifName && isLearnedInPoolSubnet(address, routable),
  );
  const isServed = (ip: Ip): boolean => isRoutable(ip) || learned.some(({ prefix }) => equalIp(prefix.ip, ip));
  const left = all.filter((ip) => !isServed(ip));
  return {
    ips: all.filter(isServed),
    warnings: left.map(
      (ip) =>
        `Interface "${ifName}" has address ${formatIp(ip)}, which Berth has not allocated to it: the node gets no route to it ` +
        'unless "hostRouteCIDR" of vendor-conf has its network',
    ),
  };
}
