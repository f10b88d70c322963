/**
 * Reads the state of a namespace as plain values: the first step of observe, plan, diff, apply. The query limits the
 * reading, so that observing the namespace of a node with many pods stays cheap.
 * Effects: those of the open namespace; the calling thread is in it while sysctls are read.
 */
import { equalIp, formatIp, type Ip } from "../net/ip.ts";
import type {
  AddressState,
  LinkState,
  NamespaceState,
  NeighbourState,
  RouteState,
  RuleState,
  SysctlKey,
} from "../plan/state.ts";
import { addressOf, restOf } from "./netlink/address/address.ts";
import { listAddresses } from "./netlink/address/requests.ts";
import type { Conversation } from "./netlink/conversation.ts";
import type { LinkMessage, NeighbourMessage } from "./netlink/families.ts";
import { LINK_AND_SETTINGS, LINK_ATTRIBUTES, linkOf } from "./netlink/link/link.ts";
import { findLinks, listLinks } from "./netlink/link/requests.ts";
import { NUD_PERMANENT } from "./netlink/neighbour/constants.ts";
import { type Neighbour, neighbourOf } from "./netlink/neighbour/neighbour.ts";
import { findNeighbour, listNeighbours } from "./netlink/neighbour/requests.ts";
import { readSysctlsByNetlink } from "./netlink/netconf/read-sysctls.ts";
import { readTable } from "./netlink/nftables/requests.ts";
import { listRoutes } from "./netlink/route/requests.ts";
import { type Route, routeOf } from "./netlink/route/route.ts";
import { listRules } from "./netlink/rule/requests.ts";
import { ruleOf } from "./netlink/rule/rule.ts";
import type { NodeMirror } from "./node-mirror.ts";
import type { NamespaceSource } from "./open-namespace.ts";
import { addressStateOf, linkStateOf, type NameOf, routeStateOf, ruleStateOf } from "./state-values.ts";
import { readSysctls } from "./sysctl.ts";

/** The neighbours to read: an address on a link, all of a link, an address on any link, or, with neither, all. */
interface NeighbourQuery {
  readonly link?: string | undefined;
  readonly ip?: Ip | undefined;
}

/** The objects to read, besides all links. Anything not requested is empty in the result. */
export interface NamespaceQuery {
  /** Addresses of all links, both families. */
  readonly addresses?: boolean | undefined;
  /** Numbers of routing tables; each costs two dumps, `every` and `not local` as much as one table. */
  readonly routeTables?: readonly number[] | "every" | "not local" | undefined;
  /** The wanted routes of these tables; default: all. */
  readonly isRouteWanted?: ((route: Route) => boolean) | undefined;
  readonly rules?: boolean | undefined;
  readonly neighbours?: readonly NeighbourQuery[] | undefined;
  readonly sysctls?: readonly SysctlKey[] | undefined;
  /** Names of nf_tables tables of family inet. */
  readonly tables?: readonly string[] | undefined;
}

type Links = readonly (readonly [LinkMessage, LinkState])[];

function describeLinks(found: readonly LinkMessage[]): [LinkMessage, LinkState][] {
  const links = found.map((message) => [message, linkOf(message)] as const);
  const names = new Map(links.map(([, { index, name }]) => [index, name]));
  return links.map(([message, link]) => [message, linkStateOf(link, (index) => names.get(index))]);
}

/** Returns the values in the order of the keys, without absent ones. Reads files only where netlink lacks them. */
function observeSysctls(source: NamespaceSource, keys: readonly SysctlKey[], links: Links): NamespaceState["sysctls"] {
  const present = keys.filter((key) => isPresent(key, links));
  if (present.length === 0) return new Map();
  const values = readSysctlsByNetlink(
    source.route,
    present,
    (name) => links.find(([, link]) => link.name === name)?.[0],
  );
  const read = readSysctls(
    source,
    present.filter((key) => !values.has(key)),
  );
  return new Map(
    present.flatMap((key) => {
      const value = values.get(key) ?? read.get(key);
      return value === undefined ? [] : [[key, value] as const];
    }),
  );
}

function observeAddresses(route: Conversation, nameOf: NameOf): AddressState[] {
  return listAddresses(route).flatMap((message) => {
    const address = addressOf(message);
    return (address && addressStateOf(address, nameOf, restOf(message))) ?? [];
  });
}

const ALL_ROUTES = { every: {}, "not local": { withoutLocal: true } } as const;

function observeRoutes(
  route: Conversation,
  { routeTables = [], isRouteWanted = () => true }: NamespaceQuery,
  nameOf: NameOf,
): RouteState[] {
  const filters = typeof routeTables === "string" ? [ALL_ROUTES[routeTables]] : routeTables.map((table) => ({ table }));
  const routes = filters.flatMap((filter) => listRoutes(route, filter).map(routeOf));
  return routes.flatMap((one) => (one !== undefined && isRouteWanted(one) && routeStateOf(one, nameOf)) || []);
}

/** Returns whether the setting's link exists: looking up the files of an absent link would cost the most. */
function isPresent(key: SysctlKey, links: Links): boolean {
  const [, kind, link] = key.split("/");
  if (kind !== "conf" || link === undefined || link === "all" || link === "default") return true;
  return links.some(([, { name }]) => name === link);
}

function observeRules(route: Conversation): RuleState[] {
  return listRules(route)
    .map(ruleOf)
    .flatMap((rule) => (rule === undefined ? [] : [ruleStateOf(rule)]));
}

const neighboursOf = (messages: readonly (NeighbourMessage | undefined)[]): Neighbour[] =>
  messages.flatMap((message) => (message && neighbourOf(message)) ?? []);

/** `all` returns the neighbours of the namespace, listed at the first call. */
function findNeighbours(
  route: Conversation,
  { link, ip }: NeighbourQuery,
  links: readonly LinkState[],
  all: () => readonly Neighbour[],
): readonly Neighbour[] {
  if (link === undefined) return ip === undefined ? all() : all().filter((neighbour) => equalIp(neighbour.ip, ip));
  const index = links.find(({ name }) => name === link)?.index;
  if (index === undefined) return [];
  return neighboursOf(ip === undefined ? listNeighbours(route, index) : [findNeighbour(route, index, ip)]);
}

function findAllNeighbours(
  route: Conversation,
  queries: readonly NeighbourQuery[],
  links: readonly LinkState[],
): Neighbour[] {
  let listed: readonly Neighbour[] | undefined;
  const all = (): readonly Neighbour[] => {
    listed ??= neighboursOf(listNeighbours(route));
    return listed;
  };
  const found = queries.flatMap((query) => findNeighbours(route, query, links, all));
  return [...new Map(found.map((one) => [`${one.link} ${formatIp(one.ip)}`, one])).values()];
}

/** Returns the permanent neighbours, which no machine has to answer for; those of unknown links are left out. */
function nameNeighbours(neighbours: readonly Neighbour[], nameOf: NameOf): NeighbourState[] {
  return neighbours.flatMap(({ link: index, ip, mac, state }) => {
    const link = nameOf(index);
    const isFixed = link !== undefined && mac !== undefined && (state & NUD_PERMANENT) !== 0;
    return isFixed ? [{ link, ip, mac }] : [];
  });
}

/**
 * Reads the state that `query` asks for. The parts are read one after the other, so a concurrent change may show in one
 * and not in another; objects of a link that came or went meanwhile are left out. Throws NetlinkError if the kernel
 * refuses, SysctlError for a setting that cannot be read.
 */
export function observeNamespace(source: NamespaceSource, query: NamespaceQuery): NamespaceState {
  const { route } = source;
  const { neighbours = [], sysctls = [], tables = [] } = query;
  const found = describeLinks(listLinks(route, sysctls.length > 0 ? LINK_AND_SETTINGS : LINK_ATTRIBUTES));
  const links = found.map(([, link]) => link);
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const nameOf: NameOf = (index) => names.get(index);
  return {
    links,
    addresses: query.addresses ? observeAddresses(route, nameOf) : [],
    routes: observeRoutes(route, query, nameOf),
    rules: query.rules ? observeRules(route) : [],
    neighbours: nameNeighbours(findAllNeighbours(route, neighbours, links), nameOf),
    sysctls: observeSysctls(source, sysctls, found),
    tables: tables.map((name) => readTable(source.netfilter, name)).filter((table) => table !== undefined),
  };
}

/** The objects to read of a node with a mirror, with only these links, and those of found routes and neighbours. */
interface MirroredQuery {
  /** Addresses that the node may have: the kernel is asked for them even if it has not reported them yet. */
  readonly addresses: readonly Ip[];
  readonly linkName: string;
  readonly linkIndex: number | undefined;
  readonly routeTables: readonly number[];
  /** The protocol (RTPROT_*) whose routes are read only to `addresses`; all routes of others are. */
  readonly ownProtocol: number;
  readonly neighbours: readonly NeighbourQuery[];
  readonly sysctls: readonly SysctlKey[];
  readonly tables: readonly string[];
}

/** Reads and adds links by index that are not known yet. A bridge or bond is read with its member. */
function addLinks(route: Conversation, known: Map<number, LinkMessage>, indexes: Iterable<number | undefined>): void {
  const missing = [...new Set(indexes)].filter((index) => index !== undefined && !known.has(index));
  if (missing.length === 0) return;
  const found = findLinks(
    route,
    missing.filter((index) => index !== undefined),
  );
  for (const link of found) known.set(link.index, link);
  addLinks(
    route,
    known,
    found.map((link) => linkOf(link).master),
  );
}

/**
 * Reads the node's addresses, rules and routes from the mirror, and everything else from the kernel. Without IPv6
 * link-local addresses. Throws as {@link observeNamespace}.
 */
export function observeMirrored(source: NamespaceSource, mirror: NodeMirror, query: MirroredQuery): NamespaceState {
  const { route } = source;
  const { addresses, rules } = mirror.readFor(query.addresses);
  const routes = query.routeTables.flatMap((table) => mirror.selectRoutes(table, query.addresses, query.ownProtocol));
  const messages = new Map(findLinks(route, [query.linkName]).map((link) => [link.index, link]));
  const wanted = describeLinks([...messages.values()]).map(([, link]) => link);
  const neighbours = findAllNeighbours(route, query.neighbours, wanted);
  addLinks(route, messages, [
    query.linkIndex,
    ...[...messages.values()].map((link) => linkOf(link).master),
    ...routes.flatMap(({ link, nextHops = [] }) => [link, ...nextHops.map((hop) => hop.link)]),
    ...neighbours.map(({ link }) => link),
  ]);
  const found = describeLinks([...messages.values()]);
  const names = new Map(found.map(([, { index, name }]) => [index, name]));
  const nameOf: NameOf = (index) => names.get(index);
  return {
    links: found.map(([, link]) => link),
    addresses,
    routes: routes.flatMap((one) => routeStateOf(one, nameOf) ?? []),
    rules,
    neighbours: nameNeighbours(neighbours, nameOf),
    sysctls: observeSysctls(source, query.sysctls, found),
    tables: query.tables.map((name) => mirror.nftTable(source.netfilter, name)).filter((table) => table !== undefined),
  };
}
