/** The NICs of a pod that the coordinator manages: addresses, tables, and default routes in whichever table. */
import { RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST } from "../../kernel/netlink/route/constants.ts";
import { FAMILIES, type Family, type Ip } from "../../net/ip.ts";
import type { AddressState, NamespaceState, RouteState, RuleState } from "../../plan/state.ts";
import { POD_VETH } from "./constants.ts";
import { includesIp, isOwn } from "./own-objects.ts";
import { isNicTable, NicTables, sourceTablesOf } from "./plan-tables.ts";

export interface Nic {
  readonly name: string;
  readonly isFirst: boolean;
  /** The NIC's table. Used if the pod has several NICs, or if another plugin routes by the NIC's source addresses. */
  readonly table: number;
  /** Tables into which another plugin (`sbr`) moved the NIC's routes, for packets from its addresses. */
  readonly others: readonly number[];
  readonly addresses: readonly Ip[];
  /** Default routes over this NIC only, as routes of the main table; they may be in another table at the moment. */
  readonly defaults: readonly RouteState[];
}

function globalAddresses(pod: NamespaceState, link: string): Ip[] {
  const isOwn = (address: AddressState): boolean => address.link === link && address.scope === RT_SCOPE_UNIVERSE;
  return pod.addresses.filter(isOwn).map(({ prefix }) => prefix.ip);
}

/**
 * Returns the route with only the next hops whose link is kept; nothing if none is left. A route that loses a next hop
 * also loses the attributes that are not decoded.
 */
function keepHops(route: RouteState, isKept: (link: string | undefined) => boolean): RouteState[] {
  const { nextHops, ...single } = route;
  if (nextHops === undefined) return isKept(route.link) ? [route] : [];
  const hops = nextHops.filter(({ link }) => isKept(link));
  if (hops.length === nextHops.length) return [route];
  if (hops.length > 1) return [{ ...route, rest: [], nextHops: hops }];
  return hops.map(({ link, gateway, flags }) => ({ ...single, rest: [], link, gateway, flags }));
}

/** Splits a route into one per link: IPv6 merges default routes of several links into one. */
function splitHops(route: RouteState): RouteState[] {
  const links = new Set((route.nextHops ?? [route]).map(({ link }) => link));
  return [...links].flatMap((name) => keepHops(route, (link) => link === name));
}

/** Returns the link of a route whose next hops, if there are several, are all on one link. */
export function linkOf({ link, nextHops }: RouteState): string | undefined {
  return link ?? nextHops?.[0]?.link;
}

export function isDefault({ destination, type }: RouteState): boolean {
  return destination.length === 0 && type === RTN_UNICAST;
}

/** Returns the default routes of one table, one per link, in the kernel's order. */
export function defaultsIn(pod: NamespaceState, table: number): RouteState[] {
  return pod.routes.filter((route) => route.table === table && isDefault(route)).flatMap(splitHops);
}

/** Returns the table that the NIC already has, by a rule from one of its addresses or a route over it. */
function findTable(pod: NamespaceState, name: string, addresses: readonly Ip[]): number | undefined {
  const isFrom = ({ from }: RuleState): boolean => from !== undefined && includesIp(addresses, from.ip);
  const rule = pod.rules.find((each) => isOwn(each) && isFrom(each));
  const route = pod.routes.find((each) => linkOf(each) === name && isOwn(each) && isNicTable(each.table));
  return rule?.table ?? route?.table;
}

/**
 * Returns the managed NICs: the first one, the one of the request, those that already have a table, and those with a
 * default route in the main table. A NIC keeps its table; a new one gets the lowest free one.
 */
export function findNics(pod: NamespaceState, first: string, ifName: string): Nic[] {
  const mainDefaults = defaultsIn(pod, RT_TABLE_MAIN);
  const links = pod.links.filter(({ name, loopback }) => !loopback && name !== POD_VETH);
  const found = links.map(({ name }) => {
    const addresses = globalAddresses(pod, name);
    return { name, addresses, table: findTable(pod, name, addresses) };
  });
  const managed = found.filter(
    ({ name, table }) =>
      name === first || name === ifName || table !== undefined || mainDefaults.some((route) => linkOf(route) === name),
  );
  const kept = managed.map(({ table }) => table);
  const tables = new NicTables(pod, kept);
  const firstLast = [...managed.filter(({ name }) => name === first), ...managed.filter(({ name }) => name !== first)];
  return firstLast.map(({ name, addresses, table: before }) => {
    const isFirst = name === first;
    const table = before ?? tables.take(name, isFirst);
    const others = sourceTablesOf(pod, name, addresses);
    return { name, isFirst, addresses, table, others, defaults: defaultsOf(pod, name, [table, ...others]) };
  });
}

/**
 * Returns the default routes over the NIC: those of the main table, and those of `tables` that do not duplicate one of
 * them or of an earlier table.
 */
function defaultsOf(pod: NamespaceState, name: string, tables: readonly number[]): RouteState[] {
  const found: RouteState[] = [];
  for (const table of [RT_TABLE_MAIN, ...tables]) {
    const own = defaultsIn(pod, table).filter((route) => linkOf(route) === name);
    const isNew = (route: RouteState): boolean => !found.some((other) => isInPlaceOf(other, route));
    found.push(...own.filter(isNew).map((route) => ({ ...route, table: RT_TABLE_MAIN })));
  }
  return found;
}

/** Returns whether a route of the main table takes the place of its copy in the NIC's table. */
function isInPlaceOf(main: RouteState, copy: RouteState): boolean {
  return main.metric === copy.metric && main.destination.ip.family === copy.destination.ip.family;
}

export function familiesOf(ips: readonly Ip[]): Family[] {
  return FAMILIES.filter((family) => ips.some((ip) => ip.family === family));
}

/**
 * Returns the pod without the routes over later NICs that the coordinator does not manage. Their own plugins are
 * responsible for them, and the next ADD of the coordinator gives them tables.
 */
export function withoutForeignRoutes(pod: NamespaceState, first: string, ifName: string): NamespaceState {
  const names = pod.links.filter(({ loopback }) => !loopback).map(({ name }) => name);
  const isForeign = (name: string): boolean =>
    ![first, ifName, POD_VETH].includes(name) && findTable(pod, name, globalAddresses(pod, name)) === undefined;
  const foreign = new Set<string | undefined>(names.filter(isForeign));
  return { ...pod, routes: pod.routes.flatMap((route) => keepHops(route, (link) => !foreign.has(link))) };
}
