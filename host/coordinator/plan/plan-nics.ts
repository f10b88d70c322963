/** The NICs of a pod that the coordinator manages: their addresses, their tables, and their default routes in whichever table. */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST } from "../../kernel/netlink/route/constants.ts";
import { bitsOf, equalIp, FAMILIES, type Family, type Ip } from "../../net/ip.ts";
import type { AddressState, NamespaceState, RouteState, RuleState } from "../../plan/state.ts";
import { BERTH_PROTOCOL, FIRST_NIC_TABLE, LAST_NIC_TABLE, NIC_RULE_PREFERENCE, POD_VETH } from "./constants.ts";

export interface Nic {
  readonly name: string;
  /** The NIC's own table, used if the pod has several NICs. */
  readonly table: number;
  readonly addresses: readonly Ip[];
  /** Default routes over this NIC only, as routes of the main table; they may be in its own table at the moment. */
  readonly defaults: readonly RouteState[];
}

function globalAddresses(pod: NamespaceState, link: string): Ip[] {
  const isOwn = (address: AddressState): boolean => address.link === link && address.scope === RT_SCOPE_UNIVERSE;
  return pod.addresses.filter(isOwn).map(({ prefix }) => prefix.ip);
}

/** Splits a route into one per link: IPv6 merges default routes of several links into one. */
function splitHops(route: RouteState): RouteState[] {
  const { nextHops, ...rest } = route;
  if (nextHops === undefined) return [route];
  const links = [...new Set(nextHops.map(({ link }) => link))];
  if (links.length === 1) return [route];
  return links.map((name) => {
    const hops = nextHops.filter(({ link }) => link === name);
    const [{ gateway, flags } = { gateway: undefined, flags: 0 }] = hops;
    return { ...rest, rest: [], ...(hops.length > 1 ? { nextHops: hops } : { link: name, gateway, flags }) };
  });
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

function isNicRule({ preference, protocol, from }: RuleState): boolean {
  const isWhole = from !== undefined && from.length === bitsOf(from.ip.family);
  return protocol === BERTH_PROTOCOL && preference === NIC_RULE_PREFERENCE && isWhole;
}

/** Returns the table that the NIC already has, by a rule from one of its addresses or a route over it. */
function findTable(pod: NamespaceState, name: string, addresses: readonly Ip[]): number | undefined {
  const rule = pod.rules.find(
    (each) => isNicRule(each) && addresses.some((ip) => each.from !== undefined && equalIp(each.from.ip, ip)),
  );
  const route = pod.routes.find(
    (each) => linkOf(each) === name && each.protocol === BERTH_PROTOCOL && isNicTable(each.table),
  );
  return rule?.table ?? route?.table;
}

export function isNicTable(table: number): boolean {
  return table >= FIRST_NIC_TABLE && table <= LAST_NIC_TABLE;
}

function requireTable(taken: ReadonlySet<number>, name: string): number {
  for (let table = FIRST_NIC_TABLE + 1; table <= LAST_NIC_TABLE; table++) if (!taken.has(table)) return table;
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `Interface "${name}": all routing tables for NICs of a pod (${FIRST_NIC_TABLE} to ${LAST_NIC_TABLE}) are in use`,
  );
}

/**
 * Returns the managed NICs: the first one, the one of the request, those that already have a table, and those with a default
 * route in the main table; those in `without` are left out. A NIC keeps its table; a new one gets the lowest free one.
 */
export function findNics(pod: NamespaceState, first: string, ifName: string, without: readonly string[]): Nic[] {
  const mainDefaults = defaultsIn(pod, RT_TABLE_MAIN);
  const links = pod.links.filter(({ name, loopback }) => !loopback && name !== POD_VETH && !without.includes(name));
  const found = links.map(({ name }) => {
    const addresses = globalAddresses(pod, name);
    return { name, addresses, table: findTable(pod, name, addresses) };
  });
  const managed = found.filter(
    ({ name, table }) =>
      name === first || name === ifName || table !== undefined || mainDefaults.some((route) => linkOf(route) === name),
  );
  const taken = new Set([FIRST_NIC_TABLE, ...managed.flatMap(({ table }) => table ?? [])]);
  const firstLast = [...managed.filter(({ name }) => name === first), ...managed.filter(({ name }) => name !== first)];
  return firstLast.map(({ name, addresses, table: before }) => {
    const table = name === first ? FIRST_NIC_TABLE : (before ?? requireTable(taken, name));
    taken.add(table);
    const inMain = mainDefaults.filter((route) => linkOf(route) === name);
    const moved = defaultsIn(pod, table).filter(
      (route) => linkOf(route) === name && !inMain.some((other) => isInPlaceOf(other, route)),
    );
    const defaults = [...inMain, ...moved.map((route) => ({ ...route, table: RT_TABLE_MAIN }))];
    return { name, addresses, table, defaults };
  });
}

/** Returns whether a route of the main table takes the place of its copy in the NIC's table. */
function isInPlaceOf(main: RouteState, copy: RouteState): boolean {
  return main.metric === copy.metric && main.destination.ip.family === copy.destination.ip.family;
}

export function familiesOf(ips: readonly Ip[]): Family[] {
  return FAMILIES.filter((family) => ips.some((ip) => ip.family === family));
}

/** Returns the route without next hops over those links; nothing if none is left. */
function withoutHops(route: RouteState, links: ReadonlySet<string>): RouteState[] {
  const { nextHops, ...rest } = route;
  if (nextHops === undefined) return route.link !== undefined && links.has(route.link) ? [] : [route];
  const hops = nextHops.filter(({ link }) => !links.has(link));
  const [only] = hops;
  if (only === undefined) return [];
  if (hops.length > 1) return [{ ...route, nextHops: hops }];
  return [{ ...rest, link: only.link, gateway: only.gateway, flags: only.flags }];
}

/**
 * Returns the pod without NICs that were attached later and are not managed by the coordinator. Their own plugins are responsible
 * for them, and the next ADD of the coordinator gives them tables.
 */
export function withoutForeignNics(pod: NamespaceState, first: string, ifName: string): NamespaceState {
  const names = pod.links.filter(({ loopback }) => !loopback).map(({ name }) => name);
  const isForeign = (name: string): boolean =>
    ![first, ifName, POD_VETH].includes(name) && findTable(pod, name, globalAddresses(pod, name)) === undefined;
  const foreign = new Set(names.filter(isForeign));
  return {
    ...pod,
    links: pod.links.filter(({ name }) => !foreign.has(name)),
    addresses: pod.addresses.filter(({ link }) => !foreign.has(link)),
    routes: pod.routes.flatMap((route) => withoutHops(route, foreign)),
  };
}
