/** Finds and builds Berth's own routes and rules, for plans of attachments and detachments. */
import { REMOVAL_GROUP } from "../../kernel/link-remover.ts";
import { RT_TABLE_MAIN } from "../../kernel/netlink/route/constants.ts";
import { FR_ACT_TO_TBL } from "../../kernel/netlink/rule/constants.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import type { NamespaceState, RouteState, RuleState } from "../../plan/state.ts";
import { BERTH_PROTOCOL, RETIRED_GROUP } from "./constants.ts";

/** Returns each address once, in the order of first occurrence. A pod may have very many. */
export function uniqueIps(ips: readonly Ip[]): Ip[] {
  return [...new Map(ips.map((ip) => [`${ip.family} ${ip.value}`, ip])).values()];
}

export const includesIp = (ips: readonly Ip[], ip: Ip): boolean => ips.some((other) => equalIp(ip, other));

/** Returns whether the route or rule is Berth's. */
export const isOwn = ({ protocol }: Pick<RouteState | RuleState, "protocol">): boolean => protocol === BERTH_PROTOCOL;

/** Returns Berth's routes of the pod's main table: the path to the node, and routes through it. */
export function serviceRoutesIn({ routes }: NamespaceState): RouteState[] {
  return routes.filter((route) => route.table === RT_TABLE_MAIN && isOwn(route));
}

/** Returns Berth's routes on the node, in one of the tables, to addresses of the pod. */
export function hostRoutesOf(host: NamespaceState, tables: readonly number[], ips: readonly Ip[]): RouteState[] {
  return host.routes.filter(
    (route) => tables.includes(route.table) && isOwn(route) && includesIp(ips, route.destination.ip),
  );
}

/** Returns a rule of Berth's that looks up the table for packets that match the selectors, or for all packets. */
export function ruleTo(table: number, rule: Pick<RuleState, "family" | "preference" | "from" | "mark">): RuleState {
  return { table, action: FR_ACT_TO_TBL, flags: 0, tos: 0, protocol: BERTH_PROTOCOL, rest: [], ...rule };
}

/** Returns the tables of the node that Berth's rules look up. */
export function ruleTablesOf({ rules }: Pick<NamespaceState, "rules">): Set<number> {
  return new Set(rules.filter(isOwn).map(({ table }) => table));
}

/** Returns the tables of {@link ruleTablesOf} and `named`. */
export function hostTablesOf(host: Pick<NamespaceState, "rules">, named: number): number[] {
  return [...new Set([named, ...ruleTablesOf(host)])];
}

/** Returns whether links of this group are pairs of detached pods, which will be deleted. */
export function isRetired(group: number): boolean {
  return group === RETIRED_GROUP || group === REMOVAL_GROUP;
}
