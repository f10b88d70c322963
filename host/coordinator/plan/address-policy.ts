/**
 * Decides which addresses of a pod get routes on the node. Tenants write network definitions, with any IPAM plugin,
 * and the node prefers the route to a pod's address over all of its other routes.
 */
import { CniError, ErrorCode, refuseInterface } from "../../cni/error.ts";
import { IFA_F_PERMANENT } from "../../kernel/netlink/address/constants.ts";
import { RT_SCOPE_UNIVERSE } from "../../kernel/netlink/route/constants.ts";
import { equalIp, formatIp, type Ip, isIpv4Mapped } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import { isSpecial } from "../../net/special.ts";
import { type AddressState, SERVICES_LINK } from "../../plan/state.ts";
import { includesIp, uniqueIps } from "./own-objects.ts";
import type { PlanInput, RoutableAddresses } from "./plan-input.ts";

/**
 * Most addresses of one pod, over all its NICs and including those from router advertisements. Each is a route and a
 * neighbour on the node. @limit
 */
export const MAX_POD_ADDRESSES = 256;

/** CniError 106 because of one address; another address would do. */
export class AddressRefusal extends CniError {
  readonly ip: Ip;
  readonly why: string;

  constructor(message: string, ip: Ip, why: string) {
    super(ErrorCode.InterfaceRefused, message);
    this.ip = ip;
    this.why = why;
  }
}

function findHarm(ip: Ip, { observed, gateways }: PlanInput): string | undefined {
  if (isSpecial(ip) || isIpv4Mapped(ip)) return "it is not a unicast address of a machine";
  const own = observed.host.addresses.find(({ prefix, link }) => link !== SERVICES_LINK && equalIp(prefix.ip, ip));
  if (own !== undefined) return `the node has it on "${own.link}"`;
  return includesIp(gateways, ip) ? "it is a gateway of the node" : undefined;
}

/**
 * Throws CniError 106 if a link with another MAC address (46 bits of the hash) has the name of the pair (44 other bits
 * of it): it belongs to another container or another program.
 */
export function requireFreeVethName({ observed, pair }: PlanInput): void {
  const found = observed.host.links.find(({ name }) => name === pair.host.name);
  if (found === undefined || found.mac === pair.host.mac) return;
  const owner = found.alias === "" ? "" : ` (${JSON.stringify(found.alias)})`;
  refuseInterface(
    `Link "${found.name}"${owner} of the node has the name of this container's veth but is not its own; rename it, or recreate the pod`,
  );
}

/** Throws {@link AddressRefusal} for an address that would divert the node's traffic, CniError 106 for too many. */
export function requireSafeAddresses(situation: PlanInput, ips: readonly Ip[]): void {
  const { ifName, observed } = situation;
  const count = observed.pod.addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).length;
  if (Math.max(count, ips.length) > MAX_POD_ADDRESSES) {
    refuseInterface(
      `The pod of interface "${ifName}" has ${Math.max(count, ips.length)} addresses, each of which needs a route on the node; ` +
        `a pod may have at most ${MAX_POD_ADDRESSES}`,
    );
  }
  for (const ip of ips) {
    const reason = findHarm(ip, situation);
    if (reason === undefined) continue;
    throw new AddressRefusal(
      `Interface "${ifName}" has address ${formatIp(ip)}, to which the node must not route its own traffic: ${reason}; give the pod another address`,
      ip,
      reason,
    );
  }
}

/** Returns whether the node may route the address to the pod. */
export function isRoutable(ip: Ip, { allocated, allowed }: RoutableAddresses): boolean {
  return allocated.some((each) => equalIp(each.ip, ip)) || allowed.some((network) => prefixContains(network, ip));
}

/** Returns whether a router advertised the address, in a subnet in which Berth allocated one to the NIC. */
function isLearnedInPoolSubnet({ prefix, flags }: AddressState, { allocated }: RoutableAddresses): boolean {
  return (flags & IFA_F_PERMANENT) === 0 && allocated.some((own) => prefixContains(own, prefix.ip));
}

/**
 * Returns the NIC's addresses that get a route on the node, and warnings about the others. Throws CniError 106 for an
 * address that the main plugin reports and the node must not route: the pod would start, but neither its node nor
 * services could answer it.
 */
export function selectRoutable(
  { addresses, ifName, observed, routable }: PlanInput,
  own: readonly Ip[],
): { ips: readonly Ip[]; warnings: readonly string[] } {
  const all = uniqueIps([...addresses, ...own]);
  if (routable === undefined) return { ips: all, warnings: [] };
  const forbidden = addresses.find((ip) => !isRoutable(ip, routable));
  if (forbidden !== undefined) {
    refuseInterface(
      `Interface "${ifName}" has address ${formatIp(forbidden)}, which Berth did not allocate, and the node would send its own ` +
        'traffic for that address to the pod; use the IPAM plugin "berth", or add the network of the address to "hostRouteCIDR" of vendor-conf',
    );
  }
  const learned = observed.pod.addresses.filter((address) => isLearnedInPoolSubnet(address, routable));
  const isServed = (ip: Ip): boolean =>
    isRoutable(ip, routable) || learned.some(({ prefix }) => equalIp(prefix.ip, ip));
  const left = all.filter((ip) => !isServed(ip));
  return {
    ips: all.filter(isServed),
    warnings: left.map(
      (ip) =>
        `Interface "${ifName}" has address ${formatIp(ip)}, which Berth did not allocate: the node gets no route to it ` +
        'unless "hostRouteCIDR" of vendor-conf contains it',
    ),
  };
}
