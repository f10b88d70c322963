/**
 * The source addresses of packets that leave a pod over its pair. The pair has no address of its own: without a
 * preferred source the kernel takes one of another link, to which the node may have no route over the pair.
 */

import { IFA_F_DADFAILED, IFA_F_TENTATIVE } from "../../kernel/netlink/address/constants.ts";
import { RT_SCOPE_LINK } from "../../kernel/netlink/route/constants.ts";
import type { Family, Ip } from "../../net/ip.ts";
import { parsePrefix } from "../../net/prefix.ts";
import type { AddressState, NamespaceState, RouteState } from "../../plan/state.ts";
import { POD_VETH } from "./constants.ts";
import { includesIp, isOwn } from "./own-objects.ts";
import type { AttachedNic, PlanInput } from "./plan-input.ts";

/** An address of a NIC that the node reaches over the pair. */
export interface Source {
  readonly nic: string;
  readonly ip: Ip;
}

/** Returns the address of the pair's end in the pod; none for "". A route with a source does not use it. */
export function pairAddresses(address: string): AddressState[] {
  const prefix = parsePrefix(`${address}/32`);
  return prefix === undefined ? [] : [{ link: POD_VETH, prefix, scope: RT_SCOPE_LINK, flags: 0 }];
}

/**
 * Metric of the second of two routes to one destination, which has no source. Linux deletes IPv4 routes of the main
 * table together with their source address, and sandboxes take the NIC's address before they read the routes over the
 * pair.
 */
const SOURCELESS_METRIC = 1;

export function isSourceless({ destination, metric, link }: RouteState): boolean {
  return destination.ip.family === 4 && metric === SOURCELESS_METRIC && link === POD_VETH;
}

/** Returns the route, and its copy behind it that stays when the source goes. */
export function withSourceless(route: RouteState): RouteState[] {
  const { destination, preferredSource } = route;
  if (destination.ip.family === 6 || destination.length === 0 || preferredSource === undefined) return [route];
  return [route, { ...route, preferredSource: undefined, metric: SOURCELESS_METRIC }];
}

/** The kernel accepts no address as a source that it is still probing. */
function isUsable({ addresses }: NamespaceState, nic: string, ip: Ip): boolean {
  return addresses.some(
    ({ link, prefix, flags }) =>
      link === nic &&
      includesIp([prefix.ip], ip) &&
      (ip.family === 4 || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) === 0),
  );
}

/**
 * Returns the sources in order of preference: those of the first NIC before those of the others. Of one NIC: addresses
 * that Berth gave it, then `ips` of the request's NIC, to which the node will have routes, then the one in use.
 */
export function findSources(
  { observed: { pod, host }, pair, attached, conf }: Pick<PlanInput, "observed" | "pair" | "attached" | "conf">,
  ips: readonly Ip[],
): Source[] {
  const routed = host.routes.filter((route) => isOwn(route) && route.link === pair.host.name);
  const inUse = pod.routes.filter(isOwn).flatMap(({ preferredSource }) => preferredSource ?? []);
  const reached = routed.map(({ destination }) => destination.ip);
  const names = pod.links.map(({ name }) => name).filter((name) => name !== conf.podDefaultCniNic);
  return [conf.podDefaultCniNic, ...names].flatMap((name) => {
    const given = attached.find(({ ifName }) => ifName === name)?.addresses ?? [];
    const candidates = [...given, ...ips, ...inUse.filter((ip) => includesIp(reached, ip)), ...reached];
    return candidates.filter((ip) => isUsable(pod, name, ip)).map((ip) => ({ nic: name, ip }));
  });
}

/** Returns the sources of the pod's routes over its pair, whether or not the node has its routes at the moment. */
export function findSourcesInUse({ pod }: PlanInput["observed"]): Source[] {
  return pod.links.flatMap(({ name: nic }) => {
    const inUse = pod.routes.flatMap((route) => (isOwn(route) && route.link !== nic && route.preferredSource) || []);
    return inUse.filter((ip) => isUsable(pod, nic, ip)).map((ip) => ({ nic, ip }));
  });
}

/**
 * Returns the pod's other NICs, with their addresses, that must be restored because the pair is made anew: the kernel
 * deleted all routes over the earlier pair with it.
 */
export function findRestored(situation: PlanInput): AttachedNic[] {
  const { observed, attached, ifName } = situation;
  if (!makesPair(situation)) return [];
  return attached
    .filter((nic) => nic.ifName !== ifName)
    .map((nic) => ({ ...nic, addresses: nic.addresses.filter((ip) => isUsable(observed.pod, nic.ifName, ip)) }));
}

/** Returns whether the pod gets its pair now. */
export function makesPair({ observed, mode }: Pick<PlanInput, "observed" | "mode">): boolean {
  return mode === "underlay" && !observed.pod.links.some(({ name }) => name === POD_VETH);
}

/** Returns the preferred source of a family, of one NIC if it has one; undefined if there is none. */
export function sourceOf(sources: readonly Source[], family: Family, nic?: string): Ip | undefined {
  const own = sources.filter(({ ip }) => ip.family === family);
  return (own.find((each) => each.nic === nic) ?? own[0])?.ip;
}
