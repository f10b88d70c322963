/**
 * What is in a namespace, read from the kernel as plain values: the first step of observe, plan, diff, apply.
 * Called by whoever plans; changes nothing. The question says what to read, so that the namespace of a node with many pods stays cheap.
 * Effects: those of the open namespace; the calling thread is in it while settings are read.
 */
import { formatIp, type Ip } from "../net/ip.ts";
import type { AddressState, LinkState, NamespaceState, RouteState, RuleState, SysctlKey } from "../plan/state.ts";
import { addressOf, restOf } from "./netlink/address/address.ts";
import { listAddresses } from "./netlink/address/requests.ts";
import type { Conversation } from "./netlink/conversation.ts";
import { linkOf } from "./netlink/link/link.ts";
import { listLinks } from "./netlink/link/requests.ts";
import { NUD_NOARP, NUD_NONE, NUD_PERMANENT } from "./netlink/neighbour/constants.ts";
import { type Neighbour, neighbourOf } from "./netlink/neighbour/neighbour.ts";
import { findNeighbour, listNeighbours } from "./netlink/neighbour/requests.ts";
import { readTable } from "./netlink/nftables/requests.ts";
import { listRoutes } from "./netlink/route/requests.ts";
import { routeOf } from "./netlink/route/route.ts";
import { listRules } from "./netlink/rule/requests.ts";
import { ruleOf } from "./netlink/rule/rule.ts";
import type { NamespaceSource } from "./open-namespace.ts";
import { addressStateOf, linkStateOf, type NameOf, routeStateOf, ruleStateOf } from "./state-values.ts";
import { readSysctls } from "./sysctl.ts";

/** Which neighbours: the one of an address on a link, all of a link, those of an address on any link, or with neither all. */
export interface NeighbourQuestion {
  readonly link?: string | undefined;
  readonly ip?: Ip | undefined;
}

/** What to read. Links are always read, all of them. What is left out is not read and answered empty. */
export interface NamespaceQuestion {
  /** Of all links, both families. */
  readonly addresses?: boolean | undefined;
  /** RT_TABLE_*, or a number of one's own; each costs two dumps, `every` as much as one. */
  readonly routeTables?: readonly number[] | "every" | undefined;
  readonly rules?: boolean | undefined;
  readonly neighbours?: readonly NeighbourQuestion[] | undefined;
  readonly sysctls?: readonly SysctlKey[] | undefined;
  /** Names of tables of nf_tables, of family inet. */
  readonly tables?: readonly string[] | undefined;
}

function observeLinks(route: Conversation): LinkState[] {
  const links = listLinks(route).map(linkOf);
  const names = new Map(links.map(({ index, name }) => [index, name]));
  return links.map((link) => linkStateOf(link, (index) => names.get(index)));
}

function observeAddresses(route: Conversation, nameOf: NameOf): AddressState[] {
  return listAddresses(route).flatMap((message) => {
    const address = addressOf(message);
    return (address && addressStateOf(address, nameOf, restOf(message))) ?? [];
  });
}

function observeRoutes(route: Conversation, tables: readonly number[] | "every", nameOf: NameOf): RouteState[] {
  const filters = tables === "every" ? [{}] : tables.map((table) => ({ table }));
  const routes = filters.flatMap((filter) => listRoutes(route, filter).map(routeOf));
  return routes.flatMap((one) => (one && routeStateOf(one, nameOf)) ?? []);
}

function observeRules(route: Conversation): RuleState[] {
  return listRules(route)
    .map(ruleOf)
    .flatMap((rule) => (rule === undefined ? [] : [ruleStateOf(rule)]));
}

function askNeighbours(route: Conversation, { link, ip }: NeighbourQuestion, links: readonly LinkState[]): Neighbour[] {
  const index = link === undefined ? undefined : links.find(({ name }) => name === link)?.index;
  if (link !== undefined && index === undefined) return [];
  const one = index === undefined || ip === undefined ? undefined : [findNeighbour(route, index, ip)];
  const messages = (one ?? listNeighbours(route, index)).filter((message) => message !== undefined);
  const neighbours = messages.map(neighbourOf).filter((neighbour) => neighbour !== undefined);
  return neighbours.filter(
    (neighbour) => ip === undefined || (neighbour.ip.family === ip.family && neighbour.ip.value === ip.value),
  );
}

/** Each once, whatever questions it answers; fixed ones apart from those that the kernel learned. */
function observeNeighbours(
  route: Conversation,
  questions: readonly NeighbourQuestion[],
  links: readonly LinkState[],
  nameOf: NameOf,
): Pick<NamespaceState, "neighbours" | "dynamicNeighbours"> {
  const found = questions.flatMap((question) => askNeighbours(route, question, links));
  const unique = new Map(found.map((one) => [`${one.link} ${formatIp(one.ip)}`, one])).values();
  const named = [...unique].flatMap(({ link: index, ip, mac, state }) => {
    const link = nameOf(index);
    return link === undefined ? [] : [{ link, ip, mac, state }];
  });
  return {
    neighbours: named.flatMap(({ link, ip, mac, state }) =>
      mac !== undefined && (state & NUD_PERMANENT) !== 0 ? [{ link, ip, mac }] : [],
    ),
    dynamicNeighbours: named.flatMap(({ link, ip, mac, state }) =>
      state === NUD_NONE || (state & (NUD_PERMANENT | NUD_NOARP)) !== 0 ? [] : [{ link, ip, mac }],
    ),
  };
}

/**
 * Reads what `question` asks for. The parts are read one after the other: what changes meanwhile may be in one and not in the other,
 * and what belongs to a link that came or went meanwhile is left out.
 * Throws NetlinkError when the kernel refuses, SysctlError for a setting that cannot be read.
 */
export function observeNamespace(source: NamespaceSource, question: NamespaceQuestion): NamespaceState {
  const { route, entrance } = source;
  const { routeTables = [], neighbours = [], sysctls = [], tables = [] } = question;
  const links = observeLinks(route);
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const nameOf: NameOf = (index) => names.get(index);
  return {
    links,
    addresses: question.addresses ? observeAddresses(route, nameOf) : [],
    routes: observeRoutes(route, routeTables, nameOf),
    rules: question.rules ? observeRules(route) : [],
    ...observeNeighbours(route, neighbours, links, nameOf),
    sysctls: readSysctls(entrance, sysctls),
    tables: tables.map((name) => readTable(source.netfilter, name)).filter((table) => table !== undefined),
  };
}
