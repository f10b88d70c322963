/**
 * The NICs of a pod that the coordinator cares for: their addresses, their tables, the default routes that they have wherever these lie.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST } from "../../kernel/netlink/route/constants.ts";
import { bitsOf, equalIp, FAMILIES, type Family, type Ip } from "../../net/ip.ts";
import type { AddressState, NamespaceState, RouteState, RuleState } from "../../plan/state.ts";
import { BERTH_PROTOCOL, FIRST_NIC_TABLE, LAST_NIC_TABLE, NIC_RULE_PREFERENCE, POD_VETH } from "./constants.ts";

export interface Nic {
  readonly name: string;
  /** Of its own, when the pod has several NICs. */
  readonly table: number;
  readonly addresses: readonly Ip[];
  /** Over this NIC alone, as routes of the main table; they may lie in its own table now. */
  readonly defaults: readonly RouteState[];
}

function globalAddresses(pod: NamespaceState, link: string): Ip[] {
  const isOwn = (address: AddressState): boolean => address.link === link && address.scope === RT_SCOPE_UNIVERSE;
  return pod.addresses.filter(isOwn).map(({ prefix }) => prefix.ip);
}

/** The route as one for each link of its next hops: IPv6 joins default routes of several links in one. */
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

/** The link of a route whose next hops, if it has several, are all of one. */
export function linkOf({ link, nextHops }: RouteState): string | undefined {
  return link ?? nextHops?.[0]?.link;
}

export function isDefault({ destination, type }: RouteState): boolean {
  return destination.length === 0 && type === RTN_UNICAST;
}

/** The default routes of one table, one for each link, in the kernel's order. */
export function defaultsIn(pod: NamespaceState, table: number): RouteState[] {
  return pod.routes.filter((route) => route.table === table && isDefault(route)).flatMap(splitHops);
}

function isNicRule({ preference, protocol, from }: RuleState): boolean {
  const isWhole = from !== undefined && from.length === bitsOf(from.ip.family);
  return protocol === BERTH_PROTOCOL && preference === NIC_RULE_PREFERENCE && isWhole;
}

/** The table that the NIC has got before: there is a rule from one of its addresses, or a route over it. */
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
 * The NICs: the first one, the one of the request, those that have a table already, and those with a default route in main.
 * Those in `without` are left out. A NIC keeps its table; a new one gets the lowest that is free.
 */
export function findNics(pod: NamespaceState, first: string, ifName: string, without: readonly string[]): Nic[] {
  const mainDefaults = defaultsIn(pod, RT_TABLE_MAIN);
  const links = pod.links.filter(({ name, loopback }) => !loopback && name !== POD_VETH && !without.includes(name));
  const found = links.map(({ name }) => {
    const addresses = globalAddresses(pod, name);
    return { name, addresses, table: findTable(pod, name, addresses) };
  });
  const cared = found.filter(
    ({ name, table }) =>
      name === first || name === ifName || table !== undefined || mainDefaults.some((route) => linkOf(route) === name),
  );
  const taken = new Set([FIRST_NIC_TABLE, ...cared.flatMap(({ table }) => table ?? [])]);
  const firstLast = [...cared.filter(({ name }) => name === first), ...cared.filter(({ name }) => name !== first)];
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

/** What is in the main table counts, and is what the copy follows. */
function isInPlaceOf(main: RouteState, copy: RouteState): boolean {
  return main.metric === copy.metric && main.destination.ip.family === copy.destination.ip.family;
}

export function familiesOf(ips: readonly Ip[]): Family[] {
  return FAMILIES.filter((family) => ips.some((ip) => ip.family === family));
}

/** The route without hops over those links; nothing when none is left. */
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
 * The pod as its NIC `ifName` was attached: without NICs that came later and have nothing to do with the coordinator. Their plugins
 * answer for them, and the next ADD of the coordinator gives them tables.
 */
export function withoutForeignNics(pod: NamespaceState, first: string, ifName: string): NamespaceState {
  const names = pod.links.filter(({ loopback }) => !loopback).map(({ name }) => name);
  const isStrange = (name: string): boolean =>
    ![first, ifName, POD_VETH].includes(name) && findTable(pod, name, globalAddresses(pod, name)) === undefined;
  const strangers = new Set(names.filter(isStrange));
  return {
    ...pod,
    links: pod.links.filter(({ name }) => !strangers.has(name)),
    addresses: pod.addresses.filter(({ link }) => !strangers.has(link)),
    routes: pod.routes.flatMap((route) => withoutHops(route, strangers)),
  };
}
