/**
 * The path between a pod and its node, for services, probes and hijacked networks. Underlay pods cannot reach their
 * node by their own NICs, nor the node them, so a veth pair connects them. The first NIC of an overlay pod already
 * leads to the node.
 */
import { refuseInterface } from "../../cni/error.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../config/coordinator-settings.ts";
import { IFA_F_PERMANENT } from "../../kernel/netlink/address/constants.ts";
import { RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST } from "../../kernel/netlink/route/constants.ts";
import { FIB_RULE_INVERT } from "../../kernel/netlink/rule/constants.ts";
import { bitsOf, equalIp, FAMILIES, type Family, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { formatPrefix, maskPrefix, type Prefix, prefixContains, wholePrefix } from "../../net/prefix.ts";
import {
  type AddressState,
  IPV6_METRIC,
  type LinkState,
  type NamespaceState,
  type NeighbourState,
  type Observed,
  type RouteState,
  type RuleState,
} from "../../plan/state.ts";
import { formatRoute } from "../../plan/text.ts";
import { AddressRefusal } from "./address-policy.ts";
import { parseAlias } from "./alias.ts";
import { BERTH_PROTOCOL, HOST_RULE_PREFERENCE, POD_VETH } from "./constants.ts";
import { includesIp, isOwn, ruleTablesOf, ruleTo, uniqueIps } from "./own-objects.ts";
import type { AttachedNic, PlanInput } from "./plan-input.ts";
import { isDefault, linkOf, type Nic } from "./plan-nics.ts";
import { isSourceless, type Source, sourceOf, withSourceless } from "./plan-sources.ts";

/**
 * Most tables of a node (`hostRuleTable`) that definitions may name. Each adds a rule for all of the node's traffic,
 * and rules are never deleted.
 * @limit
 */
const MAX_HOST_TABLES = 8;

/** The two ends of the path, and the next hop from the pod's end. */
export interface ServicePath {
  readonly pod: { readonly link: string; readonly mac: Mac };
  /** Undefined if no link of the node leads to the pod; `mac` is if the pod's own routes lead to the node. */
  readonly host: { readonly link: string; readonly mac: Mac | undefined } | undefined;
  /** The node's addresses; the first is the next hop of everything that goes through the node. */
  readonly hostAddresses: Readonly<Record<Family, readonly Ip[]>>;
  /** Overlay: gateways of the first NIC. If undefined, the node's addresses are on the link. */
  readonly gateways?: Readonly<Partial<Record<Family, Ip | undefined>>>;
  /** Families that the path supports. */
  readonly families: readonly Family[];
}

/** The node can send to the pod, too. It cannot through Open vSwitch, which takes all frames of its ports. */
export type ReachedPath = ServicePath & { readonly host: object };

export const isReached = (path: ServicePath | undefined): path is ReachedPath => path?.host !== undefined;

function hostAddressesOf({ host }: Observed, ips: readonly Ip[], end: string): Record<Family, Ip[]> {
  return { 4: findHostAddresses(host, 4, ips, end), 6: findHostAddresses(host, 6, ips, end) };
}

/** Returns the path over the pair of an underlay pod. */
export function findUnderlayPath(
  { pair, observed }: Pick<PlanInput, "pair" | "observed">,
  ips: readonly Ip[],
): ServicePath {
  const hostAddresses = hostAddressesOf(observed, ips, pair.host.name);
  const families = FAMILIES.filter((family) => hostAddresses[family].length > 0);
  return {
    pod: { link: pair.pod.name, mac: pair.pod.mac },
    host: { link: pair.host.name, mac: pair.host.mac },
    hostAddresses,
    families,
  };
}

/** Returns the other end of the pair that is the pod's first NIC. */
function findHostEnd({ host }: Observed, first: LinkState): LinkState | undefined {
  if (first.kind !== "veth" || !first.parentElsewhere) return undefined;
  return host.links.find(
    ({ index, kind, parent }) => index === first.parent && kind === "veth" && parent === first.index,
  );
}

/**
 * Returns the gateway of the family's default routes. Of several with one metric, as routers advertise them, the lowest
 * address: the kernel's order changes with every route that is added again.
 */
function gatewayOf(defaults: readonly RouteState[], family: Family): Ip | undefined {
  const own = defaults.filter(({ destination }) => destination.ip.family === family);
  const same = own.filter(({ metric }) => metric === own[0]?.metric);
  const gateways = same.flatMap(({ gateway, nextHops = [] }) => [gateway, ...nextHops.map((hop) => hop.gateway)]);
  return gateways.filter((each) => each !== undefined).toSorted((a, b) => (a.value < b.value ? -1 : 1))[0];
}

const hasFamily = (routes: readonly RouteState[], family: Family): boolean =>
  routes.some(({ destination }) => destination.ip.family === family);

/** Returns the path over an overlay pod's first NIC; undefined if no recognised link connects it to the node. */
export function findOverlayPath(
  { observed, conf }: Pick<PlanInput, "observed" | "conf">,
  first: Nic,
  ips: readonly Ip[],
): ServicePath | undefined {
  const link = observed.pod.links.find(({ name }) => name === conf.podDefaultCniNic);
  const end = link && findHostEnd(observed, link);
  if (link?.mac === undefined || end === undefined) return undefined;
  const isBridge = ({ name, kind }: LinkState): boolean => name === end.master && kind === "bridge";
  const way = end.master === undefined ? end : observed.host.links.find(isBridge);
  const hostAddresses = hostAddressesOf(observed, ips, (way ?? end).name);
  const families = FAMILIES.filter((family) => hostAddresses[family].length > 0 && hasFamily(first.defaults, family));
  return {
    pod: { link: link.name, mac: link.mac },
    host: way && { link: way.name, mac: undefined },
    hostAddresses,
    gateways: { 4: gatewayOf(first.defaults, 4), 6: gatewayOf(first.defaults, 6) },
    families,
  };
}

/** Returns a route of Berth's without special attributes. */
export function routeTo(
  destination: Prefix,
  way: Pick<RouteState, "link" | "gateway" | "preferredSource">,
  table: number,
): RouteState {
  const { family } = destination.ip;
  return {
    destination,
    table,
    type: RTN_UNICAST,
    protocol: BERTH_PROTOCOL,
    scope: family === 4 && way.gateway === undefined ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
    flags: 0,
    metric: family === 6 ? IPV6_METRIC : 0,
    tos: 0,
    rest: [],
    ...way,
  };
}

/** Returns the gateway unless it is the address itself: the kernel accepts no gateway that is behind another one. */
function wayTo(ip: Ip, gateway: Ip | undefined): Pick<RouteState, "gateway"> {
  return { gateway: gateway !== undefined && equalIp(ip, gateway) ? undefined : gateway };
}

/** Returns the pod's routes to the node's addresses and, through the first of them, to the networks behind the node. */
function podRoutes(path: ServicePath, family: Family, networks: readonly Prefix[]): RouteState[] {
  if (!path.families.includes(family)) return [];
  const { link } = path.pod;
  const addresses = path.hostAddresses[family];
  const gateway = path.gateways?.[family];
  const via = path.gateways === undefined ? addresses[0] : gateway;
  return [
    ...addresses.map((ip) => routeTo(wholePrefix(ip), { link, ...wayTo(ip, gateway) }, RT_TABLE_MAIN)),
    ...networks
      .filter(({ ip, length }) => ip.family === family && !(length === bitsOf(family) && includesIp(addresses, ip)))
      .map((network) => routeTo(maskPrefix(network), { link, gateway: via }, RT_TABLE_MAIN)),
  ];
}

/**
 * Returns an observed route of the pod as it should be now: over the pair, from one of the pod's addresses, by way of
 * the node's first address.
 */
export function renewRoute(
  route: RouteState,
  { pod, hostAddresses }: ServicePath,
  sources: readonly Source[],
): RouteState {
  const { family } = route.destination.ip;
  const [next = route.gateway] = hostAddresses[family];
  const preferredSource = isSourceless(route) ? undefined : (sourceOf(sources, family) ?? route.preferredSource);
  return route.link === pod.link ? { ...route, preferredSource, gateway: route.gateway && next } : route;
}

/**
 * Returns the routes of the pod's main table over the path: for `families` to the node and to `networks`, and present
 * ones for other networks and NICs. A default route over the node gives way to that of a NIC.
 */
export function serviceRoutes(
  present: readonly RouteState[],
  path: ServicePath,
  { families, networks, sources, nics }: ServiceDemand,
): RouteState[] {
  const isOverPair = path.gateways === undefined;
  const added = families.flatMap((family) => {
    const preferredSource = isOverPair ? sourceOf(sources, family) : undefined;
    return podRoutes(path, family, networks).flatMap((route) => withSourceless({ ...route, preferredSource }));
  });
  const named = new Set(added.map(({ destination }) => formatPrefix(destination)));
  const stays = (route: RouteState): boolean =>
    !named.has(formatPrefix(route.destination)) &&
    !(isToNode(route) && !includesIp(path.hostAddresses[route.destination.ip.family], route.destination.ip)) &&
    !(isDefault(route) && nics.some(({ defaults }) => hasFamily(defaults, route.destination.ip.family)));
  const others = present.filter(stays);
  return [...added, ...(isOverPair ? others.map((route) => renewRoute(route, path, sources)) : others)];
}

/** Returns whether the route leads to an address that is, or was, the node's, and not by way of it. */
export function isToNode({ destination, link, gateway }: RouteState): boolean {
  return link === POD_VETH && gateway === undefined && destination.length === bitsOf(destination.ip.family);
}

interface ServiceDemand {
  readonly families: readonly Family[];
  readonly networks: readonly Prefix[];
  readonly sources: readonly Source[];
  readonly nics: readonly Nic[];
}

/**
 * Returns the pod's permanent neighbours for the node's addresses, which need no resolution. A pod without IPv6 may not
 * even accept IPv6 neighbours.
 */
export function podNeighbours(
  { pod, host, hostAddresses }: ServicePath,
  families: readonly Family[],
): NeighbourState[] {
  const mac = host?.mac;
  if (mac === undefined) return [];
  return families.flatMap((family) => hostAddresses[family].map((ip) => ({ link: pod.link, ip, mac })));
}

/** Returns the node's permanent neighbours for the pod's addresses. */
export function hostNeighbours({ host, pod }: ReachedPath, ips: readonly Ip[]): NeighbourState[] {
  return ips.map((ip) => ({ link: host.link, ip, mac: pod.mac }));
}

/**
 * Returns the node's routes to the pod's addresses. They have no source address: the kernel deletes an IPv4 route
 * together with its source, so that all pods would lose theirs when a NIC of the node loses its address for a moment.
 * The pod knows all of the node's addresses.
 */
export function hostRoutes({ host }: ReachedPath, ips: readonly Ip[], table: number): RouteState[] {
  return ips.map((ip) => routeTo(wholePrefix(ip), { link: host.link }, table));
}

/**
 * Returns the node's rule, for all pods, that looks up the table of pod addresses. It comes before all rules of the
 * node that could send a pod's packets elsewhere, such as one by source, which the kernel puts first by default. Rules
 * by mark take only packets that other programs mark.
 */
export function hostRule(family: Family, table: number, present: readonly RuleState[]): RuleState {
  const rules = present.filter((each) => each.family === family && each.preference > 0);
  const isInverted = ({ flags }: RuleState): boolean => (flags & FIB_RULE_INVERT) !== 0;
  const others = rules.filter((each) => !isOwn(each) && (each.mark === undefined || isInverted(each)));
  const first = Math.min(HOST_RULE_PREFERENCE + 1, ...others.map(({ preference }) => preference));
  const own = rules.find((each) => isOwn(each) && each.table === table && each.preference < first);
  return ruleTo(table, { family, preference: own?.preference ?? Math.max(1, first - 1) });
}

/** Returns the networks behind the node, each once, without those that the pod has a route to, with a warning. */
export function findNetworks(
  situation: PlanInput,
  nics: readonly Nic[],
  restored: readonly AttachedNic[],
): { networks: readonly Prefix[]; warnings: readonly string[] } {
  const { observed } = situation;
  const all = [situation, ...restored]
    .flatMap(({ conf }) => [...conf.overlayPodCIDR, ...conf.serviceCIDR, ...conf.hijackCIDR])
    .map(maskPrefix);
  const unique = new Map(all.map((network) => [formatPrefix(network), network]));
  const inMain = observed.pod.routes.filter((route) => route.table === RT_TABLE_MAIN && !isOwn(route));
  // a default route may have moved to the NIC's table, and may come back
  const present = [...inMain, ...nics.flatMap(({ defaults }) => defaults)];
  const others = new Map(present.map((route) => [formatPrefix(route.destination), linkOf(route)]));
  const refused = [...unique.keys()].filter((text) => others.has(text));
  return {
    networks: [...unique].filter(([text]) => !others.has(text)).map(([, network]) => network),
    warnings: refused.map(
      (text) =>
        `${text} is not routed through the node: the pod already has a route to it over "${others.get(text) ?? "?"}"`,
    ),
  };
}

/**
 * Throws CniError 106 for a table of the node that contains routes of other software, since Berth's rule would send
 * all of the node's traffic there; and for one table too many, since tenants write definitions but the node is
 * shared.
 */
export function requireOwnTable({ observed, conf, clusterTable }: PlanInput): void {
  const table = conf.hostRuleTable;
  const isClusters = table === (clusterTable ?? DEFAULT_COORDINATOR_CONF.hostRuleTable);
  const tables = ruleTablesOf(observed.host);
  if (tables.has(table)) return;
  const foreign = observed.host.routes.find((route) => route.table === table && !isOwn(route));
  if (foreign !== undefined) {
    refuseInterface(
      `hostRuleTable ${table}: the node's table contains a route that Berth did not create (${formatRoute(foreign)}), ` +
        "and all of the node's traffic would be looked up there; use a table that nothing else uses, or remove the route",
    );
  }
  // Even if tenants use up the limit, the cluster's own table remains available.
  if (tables.size >= MAX_HOST_TABLES && !isClusters) {
    refuseInterface(
      `hostRuleTable ${table}: network definitions already use ${tables.size} tables on this node (${[...tables].join(", ")}), ` +
        `the maximum; use one of them`,
    );
  }
}

/** Throws {@link AddressRefusal} for an address of another live attachment: two address spaces meet on one node. */
export function requireUnusedAddresses(
  { observed, conf, owner }: PlanInput,
  { host: end }: ReachedPath,
  ips: readonly Ip[],
): void {
  for (const ip of ips) {
    const route = observed.host.routes.find(
      ({ table, destination, link }) =>
        table === conf.hostRuleTable &&
        formatPrefix(destination) === formatPrefix(wholePrefix(ip)) &&
        link !== end.link,
    );
    const link = observed.host.links.find(({ name }) => name === route?.link);
    if (link === undefined) continue;
    const holder = parseAlias(link.alias);
    if (holder?.owner === owner) continue; // an older sandbox of the same pod
    const other = holder && (holder.pod === "" ? `container ${holder.containerId}` : `pod ${holder.pod}`);
    const why = `is already in use on this node by "${link.name}"${other === undefined ? "" : ` of ${other}`}`;
    throw new AddressRefusal(
      `Address ${formatIp(ip)} ${why}; ` +
        `"${end.link}" of this pod cannot have the same address. Delete the other pod, or give one of the two another address`,
      ip,
      `it ${why}`,
    );
  }
}

/** Links of container networks, tunnels and local services: pods know none of their addresses. */
const VIRTUAL_LINKS =
  /^(?:docker|cni|cali|cilium|lxc|flannel|veth|virbr|br-[0-9a-f]{12}|tunl|vxlan|genev|wg|wireguard|kube-|nodelocaldns|ovn|antrea|weave|ip6tnl|(?:gre|sit)(?:tap)?[-\d])/;

export const isVirtualLink = (name: string): boolean => VIRTUAL_LINKS.test(name);

/** A node that announces its address by BGP has it on its loopback, or on a dummy in its place, alone. */
const LOOPBACKS = /^(?:lo$|dummy)/;

/** IFA_F_TEMPORARY, IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE (linux/if_addr.h): may disappear. */
const UNRELIABLE = 0x01 | 0x08 | 0x20 | 0x40;
/** IFA_F_TEMPORARY and IFA_F_SECONDARY are the same bit, which IPv4 sets on every further address of a subnet. */
const UNRELIABLE_IPV4 = 0x08 | 0x20;
const IFA_F_DEPRECATED = 0x20;

function isReliable({ prefix, scope, flags }: AddressState): boolean {
  const bad = prefix.ip.family === 6 ? UNRELIABLE : UNRELIABLE_IPV4;
  // Programs that move a virtual address deprecate it, so that it is not used as a source; it does not expire.
  const expires = (flags & IFA_F_PERMANENT) === 0;
  return scope === RT_SCOPE_UNIVERSE && (flags & (expires ? bad : bad & ~IFA_F_DEPRECATED)) === 0;
}

/**
 * Returns the source address that the kernel selects for IPv4 over the link `end`: the link's own, as with a bridge;
 * else, as with the pair's, the first one of all links (inet_select_addr in net/ipv4/devinet.c), possibly on the
 * loopback. For IPv6 it selects the one with the longest common prefix.
 */
function kernelSourceAddress(host: Pick<NamespaceState, "addresses">, family: Family, end: string): AddressState[] {
  const candidates = host.addresses.filter((address) => address.prefix.ip.family === 4 && isReliable(address));
  const own = candidates.filter(({ link }) => link === end);
  return family === 4 ? [...own, ...candidates].slice(0, 1) : [];
}

/**
 * Returns the node's addresses of one family, each once: first those in a subnet with one of the pod's addresses, then
 * the others in the kernel's order of links, and last the kernel's default source address towards the pod, over the
 * link `end`. A node without any uses those of its loopback.
 */
export function findHostAddresses(
  host: Pick<NamespaceState, "addresses">,
  family: Family,
  podAddresses: readonly Ip[],
  end = "",
): Ip[] {
  const candidates = host.addresses.filter(
    (address) => address.prefix.ip.family === family && isReliable(address) && !isVirtualLink(address.link),
  );
  const own = candidates.filter(({ link }) => !LOOPBACKS.test(link));
  const isNear = ({ prefix }: AddressState): boolean => podAddresses.some((ip) => prefixContains(prefix, ip));
  const last = own.length > 0 ? kernelSourceAddress(host, family, end) : candidates;
  return uniqueIps([...own.filter(isNear), ...own, ...last].map(({ prefix }) => prefix.ip));
}
