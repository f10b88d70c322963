/**
 * The NICs of a pod that the coordinator cares for: their addresses, their tables, the default routes that they have wherever these lie.
 * Called by plan-pod-routes.ts and plan-service-path.ts.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST } from "../../kernel/netlink/route/constants.ts";
import { bitsOf, equalIp, type Family, type Ip } from "../../net/ip.ts";
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

/** The route as one over each of its next hops: IPv6 joins default routes of several links in one. */
function splitHops(route: RouteState): RouteState[] {
  const { nextHops, ...rest } = route;
  if (nextHops === undefined) return [route];
  return nextHops.map(({ link, gateway, flags }) => ({ ...rest, link, gateway, flags, rest: [] }));
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

/** The table that the NIC has got before: there is a rule from one of its addresses. */
function findTable(pod: NamespaceState, addresses: readonly Ip[]): number | undefined {
  const rule = pod.rules.find(
    (each) => isNicRule(each) && addresses.some((ip) => each.from !== undefined && equalIp(each.from.ip, ip)),
  );
  return rule?.table;
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
    return { name, addresses, table: findTable(pod, addresses) };
  });
  const cared = found.filter(
    ({ name, table }) =>
      name === first || name === ifName || table !== undefined || mainDefaults.some(({ link }) => link === name),
  );
  const taken = new Set([FIRST_NIC_TABLE, ...cared.flatMap(({ table }) => table ?? [])]);
  const firstLast = [...cared.filter(({ name }) => name === first), ...cared.filter(({ name }) => name !== first)];
  return firstLast.map(({ name, addresses, table: before }) => {
    const table = name === first ? FIRST_NIC_TABLE : (before ?? requireTable(taken, name));
    taken.add(table);
    const inMain = mainDefaults.filter(({ link }) => link === name);
    const moved = defaultsIn(pod, table).filter(
      (route) => route.link === name && !inMain.some((other) => isSameWay(route, other)),
    );
    const defaults = [...inMain, ...moved.map((route) => ({ ...route, table: RT_TABLE_MAIN }))];
    return { name, addresses, table, defaults };
  });
}

function isSameWay(a: RouteState, b: RouteState): boolean {
  const sameGateway = a.gateway === undefined ? b.gateway === undefined : b.gateway !== undefined && equalIp(a.gateway, b.gateway); // biome-ignore format: one thought
  return sameGateway && a.metric === b.metric && a.destination.ip.family === b.destination.ip.family;
}

export function familiesOf(nics: readonly Nic[]): Family[] {
  const families: Family[] = [4, 6];
  return families.filter((family) => nics.some(({ addresses }) => addresses.some((ip) => ip.family === family)));
}
