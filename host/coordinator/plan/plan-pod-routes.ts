/**
 * Plans the routes of a pod with several NICs. Each NIC has a table of its own with its default route, the routes on its link,
 * and the path to the node; a rule selects the table by source address, so that replies leave by the NIC on which the request
 * arrived. The main table has the default route of one NIC.
 */
import { RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from "../../kernel/netlink/route/constants.ts";
import { FAMILIES, type Family, type Ip, isLinkLocal, isMulticast } from "../../net/ip.ts";
import { formatPrefix, wholePrefix } from "../../net/prefix.ts";
import type { NamespaceState, NextHopState, RouteState, RuleState } from "../../plan/state.ts";
import { formatRoute } from "../../plan/text.ts";
import { BERTH_PROTOCOL, FIRST_NIC_TABLE, NIC_RULE_PREFERENCE } from "./constants.ts";
import { ruleTo } from "./own-objects.ts";
import { defaultsIn, familiesOf, isDefault, isNicTable, linkOf, type Nic } from "./plan-nics.ts";
import { type Source, sourceOf } from "./plan-sources.ts";

interface PodRoutesInput {
  readonly pod: NamespaceState;
  readonly nics: readonly Nic[];
  /** The NIC of the request. */
  readonly ifName: string;
  /** The NIC that is to have the default route; "" leaves it unchanged. */
  readonly defaultNic: string;
  /** The routes to the node and through it, as in the main table. */
  readonly servicePath: readonly RouteState[];
  readonly sources: readonly Source[];
}

export interface PodRoutes {
  readonly wanted: { readonly routes: readonly RouteState[]; readonly rules: readonly RuleState[] };
  readonly owned: { readonly routes: readonly RouteState[]; readonly rules: readonly RuleState[] };
  readonly warnings: readonly string[];
}

const familyOf = ({ destination }: RouteState): Family => destination.ip.family;

/** Returns whether the route belongs to the link itself (fe80::/10, ff00::/8) and is not copied. */
function isOfLink({ destination: { ip } }: RouteState): boolean {
  return isLinkLocal(ip) || isMulticast(ip);
}

/** RTA_EXPIRES: a copy is not refreshed by router advertisements, so it must not expire either. */
const RTA_EXPIRES = 23;

function moveTo(route: RouteState, table: number): RouteState {
  const rest = route.rest.filter(({ type }) => type !== RTA_EXPIRES);
  return { ...route, table, protocol: BERTH_PROTOCOL, rest };
}

/** Returns the routes over the NIC except for the default route: connected prefixes, and routes of its pool. */
function specificRoutes(pod: NamespaceState, { name }: Nic): RouteState[] {
  return pod.routes.filter(
    (route) =>
      route.table === RT_TABLE_MAIN &&
      route.link === name &&
      route.type === RTN_UNICAST &&
      route.protocol !== BERTH_PROTOCOL &&
      !isDefault(route) &&
      !isOfLink(route),
  );
}

function nicRule(ip: Ip, table: number): RuleState {
  return ruleTo(table, { family: ip.family, preference: NIC_RULE_PREFERENCE, from: wholePrefix(ip) });
}

/**
 * Returns the NIC whose default route of the family is kept in, or moved to, the main table: the requested one; otherwise the
 * first NIC if it still has one there, even if other plugins' NICs have put theirs before it; otherwise the one that has it.
 */
function findDefaultNic(question: PodRoutesInput, family: Family): Nic | undefined {
  const { pod, nics, ifName, defaultNic } = question;
  const able = nics.filter(({ defaults }) => defaults.some((route) => familyOf(route) === family));
  const wanted = able.find(({ name }) => name === defaultNic);
  if (wanted !== undefined) return wanted;
  const inMain = defaultsIn(pod, RT_TABLE_MAIN).filter((route) => familyOf(route) === family);
  const holders = inMain.flatMap((route) => able.find(({ name }) => name === linkOf(route)) ?? []);
  const first = holders.find(({ table }) => table === FIRST_NIC_TABLE);
  return first ?? holders.find(({ name }) => name !== ifName) ?? holders[0] ?? able[0];
}

const keyOf = ({ destination, metric }: RouteState): string => `${formatPrefix(destination)} ${metric}`;

const gatewayValue = ({ gateway }: NextHopState): bigint => gateway?.value ?? 0n;

/** The kernel takes a route over the link alone beside those of routers, but not as one of their next hops. */
function withoutLinkRoute(same: readonly RouteState[]): readonly RouteState[] {
  const routed = same.filter((route) => route.gateway !== undefined || route.nextHops !== undefined);
  return routed.length > 0 ? routed : same;
}

/**
 * Joins default routes that router advertisements have added side by side into one multipath route for a table of Berth's. Its next hops are
 * in the order of their gateways: the kernel's order changes with every route that is added again.
 */
function joinSame(routes: readonly RouteState[]): RouteState[] {
  return [...Map.groupBy(routes, keyOf).values()].map(withoutLinkRoute).flatMap((same) => {
    if (same.length === 1) return same;
    const hops = same.flatMap(({ link, gateway, nextHops, flags }): readonly NextHopState[] => {
      if (nextHops !== undefined) return nextHops;
      return link === undefined ? [] : [{ link, gateway, weight: 1, flags }];
    });
    const nextHops = hops.toSorted((a, b) => (gatewayValue(a) < gatewayValue(b) ? -1 : 1));
    return same.slice(0, 1).map((first) => ({ ...first, link: undefined, gateway: undefined, flags: 0, nextHops }));
  });
}

/** Returns the copy for the NIC's table: its source, if the route has one, is the NIC's. */
function fromNic(route: RouteState, { name }: Nic, sources: readonly Source[]): RouteState {
  if (route.preferredSource === undefined) return route;
  return { ...route, preferredSource: sourceOf(sources, familyOf(route), name) };
}

/**
 * Returns the routes of the NIC's table. A default route is moved even if the NIC has no address of its family, so that it is not
 * lost.
 */
function routesOfTable(question: PodRoutesInput, nic: Nic): RouteState[] {
  const { pod } = question;
  const families = familiesOf(nic.addresses);
  const own = [
    ...joinSame(nic.defaults),
    ...specificRoutes(pod, nic).filter((route) => families.includes(familyOf(route))),
  ];
  const others = foreignRoutesIn(pod, nic.table).map(keyOf);
  const taken = new Set(own.map(({ destination }) => formatPrefix(destination)));
  const path = question.servicePath
    .filter(
      (route) =>
        families.includes(familyOf(route)) &&
        !taken.has(formatPrefix(route.destination)) &&
        !(isDefault(route) && findDefaultNic(question, familyOf(route)) !== undefined),
    )
    .map((route) => fromNic(route, nic, question.sources));
  return [...own, ...path].filter((route) => !others.includes(keyOf(route))).map((route) => moveTo(route, nic.table));
}

/**
 * Returns the default routes that the main table should have, and the present ones. Those of a family for which no NIC has a
 * replacement are left alone: they belong to the main plugin, which removes them with its NIC. A default route over the node, for
 * a pod without any other, gives way to a NIC's.
 */
function mainDefaults(question: PodRoutesInput): { wanted: RouteState[]; owned: RouteState[] } {
  const { pod } = question;
  const present = pod.routes.filter(
    (route) =>
      route.table === RT_TABLE_MAIN && isDefault(route) && findDefaultNic(question, familyOf(route)) !== undefined,
  );
  const wanted = FAMILIES.flatMap((family) => {
    const routes = findDefaultNic(question, family)?.defaults.filter((route) => familyOf(route) === family) ?? [];
    return routes.map((route) => (route.protocol === BERTH_PROTOCOL ? { ...route, protocol: RTPROT_BOOT } : route));
  });
  return { wanted, owned: present };
}

function foreignRoutesIn(pod: NamespaceState, wanted: number): RouteState[] {
  return pod.routes.filter(({ table, protocol }) => table === wanted && protocol !== BERTH_PROTOCOL);
}

function warnAboutForeignRoutes(pod: NamespaceState, nics: readonly Nic[]): string[] {
  return nics.flatMap(({ table }) =>
    foreignRoutesIn(pod, table).map(
      (route) =>
        `Table ${table} of the pod has a route that Berth did not create and leaves unchanged: ${formatRoute(route)}`,
    ),
  );
}

/** Returns whether the pod has tables or rules for its NICs. */
export function hasNicTables({ routes, rules }: NamespaceState): boolean {
  return (
    routes.some(({ table, protocol }) => protocol === BERTH_PROTOCOL && isNicTable(table)) ||
    rules.some(({ preference, protocol }) => protocol === BERTH_PROTOCOL && preference === NIC_RULE_PREFERENCE)
  );
}

/**
 * Plans the tables and rules. With fewer than two NICs only the default routes of the main table are planned. A default route is
 * added to its NIC's table before it is removed from the main one, so that it is never lost.
 */
export function planPodRoutes(question: PodRoutesInput): PodRoutes {
  const { pod, nics } = question;
  const main = mainDefaults(question);
  const tables = nics.length < 2 ? [] : nics;
  return {
    wanted: {
      routes: [...tables.flatMap((nic) => routesOfTable(question, nic)), ...main.wanted],
      rules: tables.flatMap((nic) => nic.addresses.map((ip) => nicRule(ip, nic.table))),
    },
    owned: {
      routes: [
        ...main.owned,
        ...pod.routes.filter(({ table, protocol }) => protocol === BERTH_PROTOCOL && isNicTable(table)),
      ],
      rules: pod.rules.filter(
        ({ protocol, preference }) => protocol === BERTH_PROTOCOL && preference === NIC_RULE_PREFERENCE,
      ),
    },
    warnings: warnAboutForeignRoutes(pod, tables),
  };
}
