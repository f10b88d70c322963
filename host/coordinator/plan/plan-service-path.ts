/**
 * The way between a pod and its node. Underlay pods cannot reach their node by their own NICs, nor the node them: a veth pair joins
 * them. Overlay pods have a first NIC that leads to the node already. Over this way go services, probes, and what is hijacked.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../config/coordinator-settings.ts";
import { RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST } from "../../kernel/netlink/route/constants.ts";
import { bitsOf, equalIp, FAMILIES, type Family, formatIp, type Ip } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import { formatPrefix, maskPrefix, type Prefix, wholePrefix } from "../../net/prefix.ts";
import {
  IPV6_METRIC,
  type LinkState,
  type NeighbourState,
  type Observed,
  type RouteState,
  type RuleState,
} from "../../plan/state.ts";
import { formatRoute } from "../../plan/text.ts";
import { parseAlias } from "./alias.ts";
import { BERTH_PROTOCOL, HOST_RULE_PREFERENCE } from "./constants.ts";
import { includesIp, ruleTablesOf, ruleTo } from "./own-objects.ts";
import { findHostAddresses } from "./plan-host-addresses.ts";
import type { PlanInput } from "./plan-input.ts";
import { linkOf, type Nic } from "./plan-nics.ts";

/** Most tables of a node (`hostRuleTable`) that definitions may name: each adds a rule for all of the node's traffic, and rules stay. @limit */
export const MAX_HOST_TABLES = 8;

/** Two ends, and how the pod goes on from its own. */
export interface ServicePath {
  readonly pod: { readonly link: string; readonly mac: Mac };
  /** `mac` is undefined where the pod's own routes say how the node is reached. */
  readonly host: { readonly link: string; readonly mac: Mac | undefined };
  /** The node's addresses; the first is the next hop of all that goes over the node. */
  readonly hostAddresses: Readonly<Record<Family, readonly Ip[]>>;
  /** Overlay: the first NIC's own gateway. Undefined: the node's addresses are on the link. */
  readonly gateways?: Readonly<Partial<Record<Family, Ip | undefined>>>;
  /** Families in which the pod can use it. */
  readonly families: readonly Family[];
}

function hostAddressesOf({ host }: Observed, ips: readonly Ip[]): Record<Family, Ip[]> {
  return { 4: findHostAddresses(host, 4, ips), 6: findHostAddresses(host, 6, ips) };
}

/** Over the pair of the underlay pod. */
export function findUnderlayPath({ pair, observed }: PlanInput, ips: readonly Ip[]): ServicePath {
  const hostAddresses = hostAddressesOf(observed, ips);
  const families = FAMILIES.filter((family) => hostAddresses[family].length > 0);
  return {
    pod: { link: pair.pod.name, mac: pair.pod.mac },
    host: { link: pair.host.name, mac: pair.host.mac },
    hostAddresses,
    families,
  };
}

/** The node's link that the pod's first NIC leads to: its other end, or the bridge that the other end is in. */
function findHostEnd({ host }: Observed, first: LinkState): LinkState | undefined {
  if (first.kind !== "veth" || !first.parentElsewhere) return undefined;
  const end = host.links.find(({ index, kind, parent }) => index === first.parent && kind === "veth" && parent === first.index); // biome-ignore format: one thought
  return end?.master === undefined ? end : host.links.find(({ name }) => name === end.master);
}

/** Of several next hops the first. */
function gatewayOf(route: RouteState | undefined): Ip | undefined {
  return route?.gateway ?? route?.nextHops?.[0]?.gateway;
}

/** Over the first NIC of the overlay pod; undefined when it does not lead to the node by a link that is known. */
export function findOverlayPath(
  { observed, conf }: PlanInput,
  first: Nic,
  ips: readonly Ip[],
): ServicePath | undefined {
  const link = observed.pod.links.find(({ name }) => name === conf.podDefaultCniNic);
  const end = link && findHostEnd(observed, link);
  if (link?.mac === undefined || end === undefined) return undefined;
  const hostAddresses = hostAddressesOf(observed, ips);
  const routeOf = (family: Family): RouteState | undefined =>
    first.defaults.find(({ destination }) => destination.ip.family === family);
  const families = FAMILIES.filter((family) => hostAddresses[family].length > 0 && routeOf(family) !== undefined);
  return {
    pod: { link: link.name, mac: link.mac },
    host: { link: end.name, mac: undefined },
    hostAddresses,
    gateways: { 4: gatewayOf(routeOf(4)), 6: gatewayOf(routeOf(6)) },
    families,
  };
}

/** A route of Berth's in its plainest form. */
export function routeTo(destination: Prefix, way: Pick<RouteState, "link" | "gateway">, table: number): RouteState {
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

/** Over the gateway, unless that is the address itself: the kernel takes no gateway that is behind another one. */
function wayTo(ip: Ip, gateway: Ip | undefined): Pick<RouteState, "gateway"> {
  return { gateway: gateway !== undefined && equalIp(ip, gateway) ? undefined : gateway };
}

/** Routes of the pod to the node's addresses and, over the first of them, to the networks behind the node. */
export function podRoutes(path: ServicePath, family: Family, networks: readonly Prefix[]): RouteState[] {
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

/** In the pod: where the node's addresses are, so that nobody has to ask. A pod without a family may not even take neighbours of it. */
export function podNeighbours(path: ServicePath, families: readonly Family[]): NeighbourState[] {
  const { pod, host, hostAddresses } = path;
  const { mac } = host;
  if (mac === undefined) return [];
  const usable = families.filter((family) => path.families.includes(family));
  return usable.flatMap((family) => hostAddresses[family].map((ip) => ({ link: pod.link, ip, mac })));
}

/** On the node: where the pod's addresses are. */
export function hostNeighbours({ host, pod }: ServicePath, ips: readonly Ip[]): NeighbourState[] {
  return ips.map((ip) => ({ link: host.link, ip, mac: pod.mac }));
}

/**
 * On the node: routes to the pod's addresses. They name no source address: the kernel would drop a route of IPv4 together with the
 * address that it names, and so all pods' when a NIC of the node loses its address for a moment. The pod knows each of them.
 */
export function hostRoutes({ host }: ServicePath, ips: readonly Ip[], table: number): RouteState[] {
  return ips.map((ip) => routeTo(wholePrefix(ip), { link: host.link }, table));
}

/** On the node, for all pods: addresses of pods are looked up first in their table. */
export function hostRule(family: Family, table: number): RuleState {
  return ruleTo(table, { family, preference: HOST_RULE_PREFERENCE });
}

/** Networks behind the node, each once. Left out are those that the pod has a route to already, which a warning tells. */
export function findNetworks(
  situation: PlanInput,
  nics: readonly Nic[],
): { networks: readonly Prefix[]; warnings: readonly string[] } {
  const { conf, observed } = situation;
  const all = [...conf.overlayPodCIDR, ...conf.serviceCIDR, ...conf.hijackCIDR].map(maskPrefix);
  const unique = new Map(all.map((network) => [formatPrefix(network), network]));
  const inMain = observed.pod.routes.filter(
    ({ table, protocol }) => table === RT_TABLE_MAIN && protocol !== BERTH_PROTOCOL,
  );
  // a default route may have moved to its NIC's table, and come back
  const present = [...inMain, ...nics.flatMap(({ defaults }) => defaults)];
  const others = new Map(present.map((route) => [formatPrefix(route.destination), linkOf(route)]));
  const refused = [...unique.keys()].filter((text) => others.has(text));
  return {
    networks: [...unique].filter(([text]) => !others.has(text)).map(([, network]) => network),
    warnings: refused.map(
      (text) =>
        `${text} is not reached over the node: the pod has a route to it by "${others.get(text) ?? "?"}" already`,
    ),
  };
}

/**
 * Refuses a table of the node that holds routes of others, before the rule that would send all of the node's traffic there, and one table
 * too many: definitions are written by tenants, the node is everybody's.
 */
export function requireOwnTable({ observed, conf, clusterTable }: PlanInput): void {
  const table = conf.hostRuleTable;
  const isClusters = table === (clusterTable ?? DEFAULT_COORDINATOR_CONF.hostRuleTable);
  const tables = ruleTablesOf(observed.host);
  if (tables.has(table)) return;
  const foreign = observed.host.routes.find((route) => route.table === table && route.protocol !== BERTH_PROTOCOL);
  if (foreign !== undefined) {
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `hostRuleTable ${table}: that table of the node has a route which is not Berth's (${formatRoute(foreign)}), ` +
        "and all of the node's traffic would be looked up there; name a table of Berth's own, or remove the route",
    );
  }
  // Tenants who use them up keep nobody from the cluster's own.
  if (tables.size >= MAX_HOST_TABLES && !isClusters) {
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `hostRuleTable ${table}: definitions of this node use ${tables.size} tables already (${[...tables].join(", ")}), ` +
        `which is the most there may be; name one of them`,
    );
  }
}

/** Refuses an address that the node reaches by another live attachment: two address spaces on one node meet there. */
export function requireUnusedAddresses(
  { observed, conf, owner }: PlanInput,
  path: ServicePath,
  ips: readonly Ip[],
): void {
  for (const ip of ips) {
    const other = observed.host.routes.find(
      ({ table, destination, link }) =>
        table === conf.hostRuleTable &&
        formatPrefix(destination) === formatPrefix(wholePrefix(ip)) &&
        link !== path.host.link,
    );
    const link = observed.host.links.find(({ name }) => name === other?.link);
    if (other === undefined || link === undefined) continue;
    const holder = parseAlias(link.alias);
    if (holder?.owner === owner) continue; // an older sandbox of the same pod
    const who = holder && (holder.pod === "" ? `container ${holder.containerId}` : `pod ${holder.pod}`);
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `The node reaches ${formatIp(ip)} by "${link.name}"${who === undefined ? "" : ` of ${who}`}; ` +
        `"${path.host.link}" of this pod cannot have the same address. Delete the other pod, or give one of them an address of its own`,
    );
  }
}
