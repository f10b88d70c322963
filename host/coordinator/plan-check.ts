/**
 * What CHECK may hold against a pod: not what came after the ADD by itself. Nodes get addresses (of a service that moves, say), routers advertise
 * prefixes and themselves, clusters get networks for services, and take that back; a runtime that kills pods for it would kill all of a node, and the next ones, too.
 */

import type { CollectedKey, CoordinatorConf } from "../config/coordinator-settings.ts";
import { RT_TABLE_MAIN, RTPROT_KERNEL, RTPROT_RA } from "../kernel/netlink/route/constants.ts";
import { bitsOf, equalIp, type Ip, isLinkLocal } from "../net/ip.ts";
import { formatPrefix, prefixContains } from "../net/prefix.ts";
import type { Operation } from "../plan/operation.ts";
import type { AddressState, NamespaceState, RouteState, RuleState } from "../plan/state.ts";
import { BERTH_PROTOCOL, POD_VETH } from "./plan/constants.ts";
import { includesIp } from "./plan/own-objects.ts";
import type { PlanInput } from "./plan/plan-input.ts";

const isTo = ({ destination, protocol }: RouteState, ip: Ip): boolean =>
  protocol === BERTH_PROTOCOL && destination.length === bitsOf(ip.family) && equalIp(destination.ip, ip);

/** Addresses of the node that the pod was told of; all of a family of which it was told none. */
function hostAddressesKnownToPod(host: NamespaceState, pod: NamespaceState): AddressState[] {
  const isKnown = ({ prefix: { ip } }: AddressState): boolean =>
    pod.neighbours.some((each) => each.link === POD_VETH && equalIp(each.ip, ip)) ||
    pod.routes.some((route) => isTo(route, ip));
  const known = new Set(host.addresses.filter(isKnown));
  const families = new Set([...known].map(({ prefix }) => prefix.ip.family));
  return host.addresses.filter((address) => known.has(address) || !families.has(address.prefix.ip.family));
}

/** Addresses of the pod that Berth knows of: from the main plugin, or because an ADD of that NIC, or of a later one, has found them. */
function isKnownPodAddress(situation: PlanInput, { link, prefix: { ip } }: AddressState): boolean {
  const { addresses, ifName, observed } = situation;
  const { pod, host } = observed;
  if (includesIp(addresses, ip) || host.routes.some((route) => isTo(route, ip))) return true;
  const isFrom = ({ protocol, from }: RuleState): boolean =>
    protocol === BERTH_PROTOCOL && from !== undefined && equalIp(from.ip, ip);
  return link !== ifName && pod.rules.some(isFrom);
}

/** Whether the other one leads there, too, by that link and gateway, alone or among others. */
function isCopyOf({ protocol, destination, link, gateway, nextHops }: RouteState, route: RouteState): boolean {
  if (protocol !== BERTH_PROTOCOL || formatPrefix(destination) !== formatPrefix(route.destination)) return false;
  const hops = nextHops ?? [{ link, gateway }];
  return hops.some((hop) => hop.link === route.link && isSameIp(hop.gateway, route.gateway));
}

const isSameIp = (a: Ip | undefined, b: Ip | undefined): boolean =>
  a === undefined || b === undefined ? a === b : equalIp(a, b);

/** Routes that came with an address, or from a router, of which no NIC's table has a copy. */
function isLateRoute(route: RouteState, pod: NamespaceState, kept: readonly AddressState[]): boolean {
  const { table, protocol, destination, link, gateway } = route;
  if (table !== RT_TABLE_MAIN || (protocol !== RTPROT_KERNEL && protocol !== RTPROT_RA)) return false;
  const isCopied = pod.routes.some((other) => isCopyOf(other, route));
  const isKept = kept.some((address) => address.link === link && prefixContains(destination, address.prefix.ip));
  return !isCopied && (protocol === RTPROT_RA || (gateway === undefined && !isKept));
}

/** Of what was collected, what the pod knows: the cluster may have got a network since. One that it has lost does not count in any case. */
function withKnownNetworks(
  conf: CoordinatorConf,
  collected: readonly CollectedKey[],
  pod: NamespaceState,
): CoordinatorConf {
  const inMain = pod.routes.filter(({ table }) => table === RT_TABLE_MAIN);
  const present = new Set(inMain.map(({ destination }) => formatPrefix(destination)));
  const known = collected.map(
    (key) => [key, conf[key].filter((network) => present.has(formatPrefix(network)))] as const,
  );
  return { ...conf, ...Object.fromEntries(known) };
}

/** The situation without what came since by itself. `collected`: keys of the configuration that nobody has written. */
export function ignoreLaterChanges(situation: PlanInput, collected: readonly CollectedKey[] = []): PlanInput {
  const { pod, host } = situation.observed;
  const kept = pod.addresses.filter((address) => address.scope !== 0 || isKnownPodAddress(situation, address));
  const routes = pod.routes.filter((route) => !isLateRoute(route, pod, kept));
  return {
    ...situation,
    conf: withKnownNetworks(situation.conf, collected, pod),
    observed: {
      pod: { ...pod, addresses: kept, routes },
      host: { ...host, addresses: hostAddressesKnownToPod(host, pod) },
    },
  };
}

/** A default route by a router that came or went; routers advertise themselves by link-local addresses. */
export function isRouterRoute(operation: Operation): boolean {
  if (operation.kind !== "add-route" && operation.kind !== "delete-route") return false;
  const { destination, gateway, nextHops = [{ gateway }] } = operation.route;
  const isLearned = nextHops.every((hop) => hop.gateway !== undefined && isLinkLocal(hop.gateway));
  return operation.place === "pod" && destination.length === 0 && isLearned;
}

/** Another group of the pair, since other pod networks were collected: the group says what is masqueraded. */
export function isSnatGroupChange(operation: Operation, collected: readonly CollectedKey[]): boolean {
  if (operation.kind !== "set-link" || operation.place !== "host" || !collected.includes("overlayPodCIDR"))
    return false;
  return Object.keys(operation.to).every((key) => key === "group");
}
