/**
 * Plans the routes of a pod with several NICs. Each NIC has a table of its own with its default route, the routes on
 * its link, and the path to the node; a rule selects the table by source address, so that replies leave by the NIC on
 * which the request arrived. The main table has the default route of one NIC.
 */
import { RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from "../../kernel/netlink/route/constants.ts";
import { FR_ACT_GOTO } from "../../kernel/netlink/rule/constants.ts";
import { FAMILIES, type Family, type Ip, isLinkLocal, isMulticast } from "../../net/ip.ts";
import { formatPrefix, wholePrefix } from "../../net/prefix.ts";
import type { NamespaceState, NextHopState, RouteState, RuleState } from "../../plan/state.ts";
import { formatRoute } from "../../plan/text.ts";
import {
  BERTH_PROTOCOL,
  DEFAULT_RULE_PREFERENCE,
  GUARD_RULE_PREFERENCE,
  NIC_RULE_PREFERENCE,
  REPLY_RULE_PREFERENCE,
} from "./constants.ts";
import { isOwn, ruleTo } from "./own-objects.ts";
import { defaultsIn, familiesOf, isDefault, linkOf, type Nic } from "./plan-nics.ts";
import { isSourceless, type Source, sourceOf } from "./plan-sources.ts";
import { isTableOfNic } from "./plan-tables.ts";

interface PodRoutesInput {
  readonly pod: NamespaceState;
  readonly nics: readonly Nic[];
  readonly ifName: string;
  /** The NIC for the default route; "" leaves the route unchanged. */
  readonly defaultNic: string;
  /** A plugin behind the coordinator moves the routes of the request's NIC out of the main table. */
  readonly losesMainRoutes?: boolean | undefined;
  /** Families with a rule for replies, which comes before those of NICs. */
  readonly replyFamilies: readonly Family[];
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
function specificRoutes(pod: NamespaceState, { name, others }: Nic): RouteState[] {
  return pod.routes.filter(
    (route) =>
      [RT_TABLE_MAIN, ...others].includes(route.table) &&
      route.link === name &&
      route.type === RTN_UNICAST &&
      !isOwn(route) &&
      !isDefault(route) &&
      !isOfLink(route),
  );
}

/** Returns whether the NIC's routes leave the main table: another plugin moves them to a table for its addresses. */
function isMovedOut({ ifName, losesMainRoutes = false }: PodRoutesInput, { name, others }: Nic): boolean {
  return others.length > 0 || (losesMainRoutes && name === ifName);
}

/**
 * Returns the rule that sends packets without a route in the main table to the table of the NIC with the default route,
 * if the main table does not keep that route.
 */
function defaultRule(question: PodRoutesInput, family: Family): RuleState[] {
  const { pod, ifName, losesMainRoutes = false } = question;
  const nic = findDefaultNic(question, family);
  if (nic === undefined || !isMovedOut(question, nic)) return [];
  const isInMain = defaultsIn(pod, RT_TABLE_MAIN).some(
    (route) => linkOf(route) === nic.name && familyOf(route) === family,
  );
  if (isInMain && !(losesMainRoutes && nic.name === ifName)) return [];
  return [ruleTo(nic.table, { family, preference: DEFAULT_RULE_PREFERENCE })];
}

/**
 * Returns the rules that lead the pod's packets past the rules of a plugin that moves routes, to Berth's. The kernel
 * puts a rule without a preference before all others but the first (net/core/fib_rules.c, fib_default_rule_pref), and
 * behind rules with the first one's preference: no other position stays before it.
 */
function guardRules({ replyFamilies }: PodRoutesInput, moved: readonly Nic[]): RuleState[] {
  return familiesOf(moved.flatMap(({ addresses }) => addresses)).map((family) => {
    const goto = replyFamilies.includes(family) ? REPLY_RULE_PREFERENCE : NIC_RULE_PREFERENCE;
    return { ...ruleTo(0, { family, preference: GUARD_RULE_PREFERENCE }), action: FR_ACT_GOTO, goto };
  });
}

/** Preferences of the rules that serve NICs. */
const PREFERENCES: readonly number[] = [GUARD_RULE_PREFERENCE, NIC_RULE_PREFERENCE, DEFAULT_RULE_PREFERENCE];

function nicRule(ip: Ip, table: number): RuleState {
  return ruleTo(table, { family: ip.family, preference: NIC_RULE_PREFERENCE, from: wholePrefix(ip) });
}

/**
 * Returns the NIC whose default route of the family is kept in, or moved to, the main table: the requested one;
 * otherwise the first NIC if it still has one there, even behind those of other plugins' NICs; otherwise the NIC that
 * has one.
 */
function findDefaultNic(question: PodRoutesInput, family: Family): Nic | undefined {
  const { pod, nics, ifName, defaultNic } = question;
  const able = nics.filter(({ defaults }) => defaults.some((route) => familyOf(route) === family));
  const wanted = able.find(({ name }) => name === defaultNic);
  if (wanted !== undefined) return wanted;
  const inMain = defaultsIn(pod, RT_TABLE_MAIN).filter((route) => familyOf(route) === family);
  const last = pod.rules.find(
    (rule) => isOwn(rule) && rule.preference === DEFAULT_RULE_PREFERENCE && rule.family === family,
  );
  const holders = [
    ...inMain.flatMap((route) => able.find(({ name }) => name === linkOf(route)) ?? []),
    ...able.filter(({ table }) => table === last?.table),
  ];
  const first = holders.find(({ isFirst }) => isFirst);
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
 * Joins default routes that router advertisements have added side by side into one multipath route for a table of
 * Berth's. Its next hops are in the order of their gateways: the kernel's order changes with every route that is
 * added again.
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

/** Returns the routes of the NIC's table, also a default route of a family that the NIC has no address of. */
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
        !isSourceless(route) &&
        !(isDefault(route) && findDefaultNic(question, familyOf(route)) !== undefined),
    )
    .map((route) => fromNic(route, nic, question.sources));
  return [...own, ...path].filter((route) => !others.includes(keyOf(route))).map((route) => moveTo(route, nic.table));
}

/**
 * Returns the default routes that the main table should have, and the present ones. It leaves those of a family alone
 * for which no NIC has a replacement: they belong to the main plugin, which removes them with its NIC. A default route
 * over the node, for a pod without any other, gives way to a NIC's.
 */
function mainDefaults(question: PodRoutesInput): { wanted: RouteState[]; owned: RouteState[] } {
  const present = question.pod.routes.filter(
    (route) =>
      route.table === RT_TABLE_MAIN && isDefault(route) && findDefaultNic(question, familyOf(route)) !== undefined,
  );
  const wanted = FAMILIES.flatMap((family) => {
    const nic = findDefaultNic(question, family);
    const routes = nic?.defaults.filter((route) => familyOf(route) === family) ?? [];
    if (nic !== undefined && isMovedOut(question, nic)) return present.filter((route) => linkOf(route) === nic.name);
    return routes.map((route) => (isOwn(route) ? { ...route, protocol: RTPROT_BOOT } : route));
  });
  return { wanted, owned: present };
}

function foreignRoutesIn(pod: NamespaceState, wanted: number): RouteState[] {
  return pod.routes.filter((route) => route.table === wanted && !isOwn(route));
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
export function hasNicTables(pod: NamespaceState): boolean {
  const { routes, rules } = pod;
  const isOfNic = isTableOfNic(pod);
  return (
    routes.some((route) => isOwn(route) && isOfNic(route.table)) ||
    rules.some((rule) => isOwn(rule) && rule.preference === NIC_RULE_PREFERENCE)
  );
}

/**
 * Plans the tables and rules. With fewer than two NICs, and no routes that another plugin moves, it plans only the
 * default routes of the main table. A default route is added to its NIC's table before it is removed from the main one,
 * so that it is never lost.
 */
export function planPodRoutes(question: PodRoutesInput): PodRoutes {
  const { pod, nics } = question;
  const main = mainDefaults(question);
  const moved = nics.filter((nic) => isMovedOut(question, nic));
  const tables = nics.length > 1 || moved.length > 0 ? nics : [];
  const isOfNic = isTableOfNic(pod);
  return {
    wanted: {
      routes: [...tables.flatMap((nic) => routesOfTable(question, nic)), ...main.wanted],
      rules: [
        ...tables.flatMap((nic) => nic.addresses.map((ip) => nicRule(ip, nic.table))),
        ...guardRules(question, moved),
        ...FAMILIES.flatMap((family) => defaultRule(question, family)),
      ],
    },
    owned: {
      routes: [...main.owned, ...pod.routes.filter((route) => isOwn(route) && isOfNic(route.table))],
      rules: pod.rules.filter((rule) => isOwn(rule) && PREFERENCES.includes(rule.preference)),
    },
    warnings: warnAboutForeignRoutes(pod, tables),
  };
}
