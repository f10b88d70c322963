/**
 * Excludes from CHECK the changes that happen by themselves after the ADD: nodes get addresses (of a service that
 * moves, say), routers advertise and withdraw prefixes and themselves, and clusters get service networks. A runtime
 * that killed pods for such changes would kill all pods of a node, and their successors too.
 */

import type { CollectedKey, CoordinatorConf } from "../config/coordinator-settings.ts";
import { RT_TABLE_MAIN, RTPROT_KERNEL, RTPROT_RA } from "../kernel/netlink/route/constants.ts";
import { bitsOf, equalIp, FAMILIES, type Ip, isLinkLocal } from "../net/ip.ts";
import { formatPrefix, prefixContains } from "../net/prefix.ts";
import type { Operation } from "../plan/operation.ts";
import type { AddressState, NamespaceState, RouteState, RuleState } from "../plan/state.ts";
import { formatHop, formatRoute } from "../plan/text.ts";
import { BERTH_PROTOCOL, FIRST_REPLY_TABLE, POD_VETH } from "./plan/constants.ts";
import { includesIp, isOwn } from "./plan/own-objects.ts";
import type { PlanInput } from "./plan/plan-input.ts";
import { findHostAddresses, isToNode } from "./plan/plan-service-path.ts";
import { isSourceless } from "./plan/plan-sources.ts";
import { isNicTable, replyRoutesIn } from "./plan/plan-tables.ts";

const isTo = ({ destination, protocol }: RouteState, ip: Ip): boolean =>
  protocol === BERTH_PROTOCOL && destination.length === bitsOf(ip.family) && equalIp(destination.ip, ip);

/** Returns the node's addresses that the pod knows; all addresses of a family of which it knows none. */
function hostAddressesKnownToPod(host: NamespaceState, pod: NamespaceState): AddressState[] {
  const isKnown = ({ prefix: { ip } }: AddressState): boolean =>
    pod.neighbours.some((each) => each.link === POD_VETH && equalIp(each.ip, ip)) ||
    pod.routes.some((route) => isTo(route, ip));
  const known = new Set(host.addresses.filter(isKnown));
  const families = new Set([...known].map(({ prefix }) => prefix.ip.family));
  return host.addresses.filter((address) => known.has(address) || !families.has(address.prefix.ip.family));
}

/** Returns whether Berth knows the pod's address: from the main plugin, or from an ADD of that NIC or a later one. */
function isKnownPodAddress(situation: PlanInput, { link, prefix: { ip } }: AddressState): boolean {
  const { addresses, ifName, observed } = situation;
  const { pod, host } = observed;
  if (link === POD_VETH || includesIp(addresses, ip) || host.routes.some((route) => isTo(route, ip))) return true;
  const isFrom = ({ protocol, from }: RuleState): boolean =>
    protocol === BERTH_PROTOCOL && from !== undefined && equalIp(from.ip, ip);
  return link !== ifName && pod.rules.some(isFrom);
}

/** Returns whether the route is Berth's copy: same destination, link and gateway, alone or among next hops. */
function isCopyOf({ protocol, destination, link, gateway, nextHops }: RouteState, route: RouteState): boolean {
  if (protocol !== BERTH_PROTOCOL || formatPrefix(destination) !== formatPrefix(route.destination)) return false;
  const hops = nextHops ?? [{ link, gateway }];
  return hops.some((hop) => formatHop(hop) === formatHop(route));
}

/** Returns whether the route came later, with an address or from a router: no table of a NIC has a copy of it. */
function isLateRoute(route: RouteState, pod: NamespaceState, kept: readonly AddressState[]): boolean {
  const { table, protocol, destination, link } = route;
  if (table !== RT_TABLE_MAIN || (protocol !== RTPROT_KERNEL && protocol !== RTPROT_RA)) return false;
  const isCopied = pod.routes.some((other) => isCopyOf(other, route));
  const isKept = kept.some((address) => address.link === link && prefixContains(destination, address.prefix.ip));
  return !isCopied && (protocol === RTPROT_RA || !isKept);
}

/**
 * Returns the configuration with only those collected networks that the pod has a route to. The cluster may have got
 * others since, and CHECK ignores a network that it has lost.
 */
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

/**
 * Returns the input without later changes, except changes of the node's addresses if pods are told of them, when
 * `routable` is known. `collected`: keys of the configuration that are collected, not configured.
 */
export function ignoreLaterChanges(situation: PlanInput, collected: readonly CollectedKey[]): PlanInput {
  const { pod, host } = situation.observed;
  const isTold = situation.routable !== undefined;
  const isGone = (ip: Ip): boolean => !isTold && !host.addresses.some(({ prefix }) => equalIp(prefix.ip, ip));
  const kept = pod.addresses.filter((address) => isKnownPodAddress(situation, address));
  const lost = isTold ? [] : FAMILIES.filter((family) => findHostAddresses(host, family, []).length === 0);
  const vain = new Set(replyRoutesIn(pod).filter(({ destination }) => lost.includes(destination.ip.family)));
  const routes = pod.routes.filter(
    (route) => !isLateRoute(route, pod, kept) && !(isToNode(route) && isGone(route.destination.ip)) && !vain.has(route),
  );
  const neighbours = pod.neighbours.filter(({ link, ip }) => link !== POD_VETH || !isGone(ip));
  return {
    ...situation,
    conf: withKnownNetworks(situation.conf, collected, pod),
    observed: {
      pod: { ...pod, addresses: kept, routes, neighbours },
      host: isTold ? host : { ...host, addresses: hostAddressesKnownToPod(host, pod) },
    },
  };
}

interface CheckedNic {
  readonly ifName: string;
  /** Next hops in the main plugin's result, which router advertisements do not change. */
  readonly routers: readonly Ip[];
  readonly collected: readonly CollectedKey[];
}

/** Returns whether the operation restores state that the ADD left. */
export function isDifference(operation: Operation, nic: CheckedNic): boolean {
  return !isRemnant(operation) && !isRouterRoute(operation, nic) && !isSnatGroupChange(operation, nic.collected);
}

/**
 * A surplus entry in a table of NICs was left by a NIC whose network has no coordinator, a rule for replies by a node
 * that has lost its addresses of the family; the next ADD removes it.
 */
function isRemnant(operation: Operation): boolean {
  if (operation.kind === "delete-route") return isNicTable(operation.route.table);
  if (operation.kind !== "delete-rule") return false;
  return isNicTable(operation.rule.table) || operation.rule.table === FIRST_REPLY_TABLE;
}

/**
 * Returns whether the operation is about the default route of a router that came or went. Routers advertise link-local
 * addresses; one in the main plugin's result is not such a router.
 */
function isRouterRoute(operation: Operation, { ifName, routers }: CheckedNic): boolean {
  if (operation.kind !== "add-route" && operation.kind !== "delete-route") return false;
  const { destination, link, gateway, nextHops = [{ link, gateway }] } = operation.route;
  const isLearned = (hop: { readonly link?: string | undefined; readonly gateway?: Ip | undefined }): boolean =>
    hop.gateway !== undefined && isLinkLocal(hop.gateway) && !(hop.link === ifName && includesIp(routers, hop.gateway));
  return destination.length === 0 && nextHops.every(isLearned);
}

/** Returns whether the operation only changes the pair's group (masquerading), because pod networks were collected. */
function isSnatGroupChange(operation: Operation, collected: readonly CollectedKey[]): boolean {
  if (operation.kind !== "set-link" || !collected.includes("overlayPodCIDR")) return false;
  return Object.keys(operation.to).every((key) => key === "group");
}

/**
 * Returns whether the operation only updates a pod that was attached by an earlier release, or before the pair had an
 * address: no route over the pair has its second copy without a source, or, of release 0.4 or earlier, no route has a
 * source. Such a pod works as before until it restarts.
 */
export function isUpgrade(operation: Operation, { routes }: NamespaceState): boolean {
  const former = routes.filter((route) => route.link === POD_VETH && isOwn(route));
  if (operation.kind === "add-address") return operation.address.link === POD_VETH;
  if (operation.kind === "add-route" && isSourceless(operation.route)) return !former.some(isSourceless);
  if (former.some(({ preferredSource }) => preferredSource !== undefined)) return false;
  if (operation.kind !== "add-route" && operation.kind !== "delete-route") return false;
  const { preferredSource: _, ...rest } = operation.route;
  return former.some((each) => formatRoute(each) === formatRoute(rest));
}
