/**
 * Routes of a pod with several NICs: each NIC has a table of its own, with its default route, what is on its link, and the way to the
 * node; a rule sends there what comes from its addresses. So replies leave by the NIC on which the request came. The main table has the
 * default route of one NIC.
 */
import { RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from "../../kernel/netlink/route/constants.ts";
import { FAMILIES, type Family, type Ip, isLinkLocal, isMulticast } from "../../net/ip.ts";
import { formatPrefix, wholePrefix } from "../../net/prefix.ts";
import type { NamespaceState, NextHopState, RouteState, RuleState } from "../../plan/state.ts";
import { formatRoute } from "../../plan/text.ts";
import { BERTH_PROTOCOL, FIRST_NIC_TABLE, NIC_RULE_PREFERENCE } from "./constants.ts";
import { ruleTo } from "./own-objects.ts";
import { defaultsIn, familiesOf, isDefault, isNicTable, linkOf, type Nic } from "./plan-nics.ts";

export interface PodRoutesInput {
  readonly pod: NamespaceState;
  readonly nics: readonly Nic[];
  /** The NIC of the request. */
  readonly ifName: string;
  /** The NIC that is to have the default route, "" to leave it. */
  readonly defaultNic: string;
  /** Routes to the node and over it, for one family, as of the main table. */
  readonly servicePath: (family: Family) => readonly RouteState[];
}

export interface PodRoutes {
  readonly wanted: { readonly routes: readonly RouteState[]; readonly rules: readonly RuleState[] };
  readonly owned: { readonly routes: readonly RouteState[]; readonly rules: readonly RuleState[] };
  readonly warnings: readonly string[];
}

const familyOf = ({ destination }: RouteState): Family => destination.ip.family;

/** fe80::/10 and ff00::/8: of the link itself, nobody's to copy. */
function isOfLink({ destination: { ip } }: RouteState): boolean {
  return isLinkLocal(ip) || isMulticast(ip);
}

/** RTA_EXPIRES: a copy does not follow the router's advertisements, so it must not end with them either. */
const RTA_EXPIRES = 23;

function moveTo(route: RouteState, table: number): RouteState {
  const rest = route.rest.filter(({ type }) => type !== RTA_EXPIRES);
  return { ...route, table, protocol: BERTH_PROTOCOL, rest };
}

/** What is reached over the NIC, but by its default route: connected prefixes, and routes of its pool. */
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
 * The NIC whose default route of the family stays in, or comes to, the main table: the wanted one, or the first NIC if it has it still,
 * whatever NICs of other plugins have put in front of it, or else the one that has it.
 */
export function findDefaultNic(question: PodRoutesInput, family: Family): Nic | undefined {
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

/** Default routes that router advertisements have put side by side are one with several next hops in a table of ours. */
function joinSame(routes: readonly RouteState[]): RouteState[] {
  return [...Map.groupBy(routes, keyOf).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined || same.length === 1) return same;
    const hops = same.flatMap(({ link, gateway, nextHops, flags }): readonly NextHopState[] => {
      if (nextHops !== undefined) return nextHops;
      return link === undefined ? [] : [{ link, gateway, weight: 1, flags }];
    });
    return [{ ...first, link: undefined, gateway: undefined, flags: 0, nextHops: hops }];
  });
}

/** A default route moves even where the NIC has no address of its family, so that it is not lost. */
function routesOfTable(question: PodRoutesInput, nic: Nic): RouteState[] {
  const { pod } = question;
  const families = familiesOf(nic.addresses);
  const own = [
    ...joinSame(nic.defaults),
    ...specificRoutes(pod, nic).filter((route) => families.includes(familyOf(route))),
  ];
  const others = foreignRoutesIn(pod, nic.table).map(keyOf);
  const taken = new Set(own.map(({ destination }) => formatPrefix(destination)));
  const path = families
    .flatMap(question.servicePath)
    .filter(
      (route) =>
        !taken.has(formatPrefix(route.destination)) &&
        !(isDefault(route) && findDefaultNic(question, familyOf(route)) !== undefined),
    );
  return [...own, ...path].filter((route) => !others.includes(keyOf(route))).map((route) => moveTo(route, nic.table));
}

/**
 * The default routes of the main table as they should be, and those that are there now. Those of a family for which no NIC has one to
 * put in their place are left alone: they are the main plugin's, who removes them with its NIC.
 * One over the node, for a pod without any, gives way to a NIC's.
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
        `Table ${table} of the pod has a route that is not Berth's, which is left alone: ${formatRoute(route)}`,
    ),
  );
}

/** Whether the pod has tables or rules for its NICs. */
export function hasNicTables({ routes, rules }: NamespaceState): boolean {
  return (
    routes.some(({ table, protocol }) => protocol === BERTH_PROTOCOL && isNicTable(table)) ||
    rules.some(({ preference, protocol }) => protocol === BERTH_PROTOCOL && preference === NIC_RULE_PREFERENCE)
  );
}

/**
 * With fewer than two NICs nothing is wanted but the default routes of the one in the main table. A default route is in its NIC's table
 * before it leaves the main one, so that it is never lost.
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
      rules: pod.rules.filter(({ protocol, preference }) => protocol === BERTH_PROTOCOL && preference === NIC_RULE_PREFERENCE), // biome-ignore format: one thought
    },
    warnings: warnAboutForeignRoutes(pod, tables),
  };
}
