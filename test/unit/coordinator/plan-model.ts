/** Two namespaces as values that change as the kernel's do: the effect of an operation, and the kernel's refusals. */
import { equalIp, formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import type { Operation, RouteRank } from "../../../host/plan/operation.ts";
import {
  EMPTY_NAMESPACE,
  type LinkState,
  type NamespaceState,
  type Observed,
  PLACES,
  type Place,
  type RouteState,
  type RuleState,
} from "../../../host/plan/state.ts";
import { formatAddress, formatNeighbour, formatRoute, formatRule } from "../../../host/plan/text.ts";
import type { LinkWords, Statement } from "./plan-words.ts";

export const NOTHING: Observed = { pod: EMPTY_NAMESPACE, host: EMPTY_NAMESPACE };

const keyOfRoute = ({ destination, table, metric, tos }: RouteState): string =>
  `${formatPrefix(destination)} ${table} ${metric} ${tos}`;
const textOfRule = (rule: RuleState): string => `${rule.family} ${formatRule(rule)}`;

function change(observed: Observed, place: Place, part: Partial<NamespaceState>): Observed {
  return { ...observed, [place]: { ...observed[place], ...part } };
}

/** Returns the state without a link and all that leads over it. */
export function withoutLink(observed: Observed, place: Place, name: string): Observed {
  const state = observed[place];
  const stays = ({ link }: { readonly link?: string | undefined }): boolean => link !== name;
  const routes = state.routes.filter(stays).flatMap((route): RouteState[] => {
    if (route.nextHops === undefined) return [route];
    const hops = route.nextHops.filter(stays);
    const [one] = hops;
    // IPv4 drops the route with its first lost hop, IPv6 goes on with the others
    if (hops.length === route.nextHops.length) return [route];
    if (route.destination.ip.family === 4 || one === undefined) return [];
    const { nextHops: _, ...rest } = route;
    return hops.length === 1 ? [{ ...rest, link: one.link, gateway: one.gateway }] : [{ ...route, nextHops: hops }];
  });
  return change(observed, place, {
    links: state.links.filter((link) => link.name !== name),
    addresses: state.addresses.filter(stays),
    routes,
    neighbours: state.neighbours.filter(stays),
    sysctls: new Map([...state.sysctls].filter(([key]) => !key.includes(`/${name}/`))),
  });
}

/** A link goes, and a veth takes its other end along. */
export function removeLink(observed: Observed, place: Place, name: string): Observed {
  const link = observed[place].links.find((each) => each.name === name);
  const other = place === "pod" ? "host" : "pod";
  const peer =
    link?.kind === "veth" && link.parentElsewhere
      ? observed[other].links.find(({ index }) => index === link.parent)
      : undefined;
  const without = withoutLink(observed, place, name);
  return peer === undefined ? without : withoutLink(without, other, peer.name);
}

function nextIndex(observed: Observed): number {
  return Math.max(1, ...PLACES.flatMap((place) => observed[place].links.map(({ index }) => index))) + 1;
}

function settingsOfNew(name: string): [string, string][] {
  return [
    [`ipv4/conf/${name}/rp_filter`, "1"],
    [`ipv6/conf/${name}/disable_ipv6`, "0"],
  ];
}

function addLink(observed: Observed, place: Place, { peer, ...words }: LinkWords): Observed {
  const other = place === "pod" ? "host" : "pod";
  const index = words.index === 0 ? nextIndex(observed) : words.index;
  const peerLink = observed[other].links.find(({ name }) => name === peer);
  const link: LinkState = { ...words, index, parent: peerLink?.index, parentElsewhere: peer !== undefined };
  const linked = change(observed, place, {
    links: [...observed[place].links, link],
    sysctls: new Map([...observed[place].sysctls, ...settingsOfNew(link.name)]),
  });
  const join = (each: LinkState): LinkState =>
    each.name === peer ? { ...each, parent: index, parentElsewhere: true } : each;
  return peerLink === undefined ? linked : change(linked, other, { links: linked[other].links.map(join) });
}

/**
 * Adds to a list a thing that must not be there; `first` as the kernel puts routes that others add without being asked
 * to be careful.
 */
function add<T>(list: readonly T[], thing: T, key: (thing: T) => string): T[] {
  if (list.some((other) => key(other) === key(thing))) throw new Error(`EEXIST: ${key(thing)}`);
  return [...list, thing];
}

function remove<T>(list: readonly T[], thing: T, text: (thing: T) => string): T[] {
  return list.filter((other) => text(other) !== text(thing));
}

/**
 * Applies a change that happens by itself or is made by others: no care is taken, and a further default route stands
 * first.
 */
export function applyStatement(observed: Observed, { place, ends, fact }: Statement): Observed {
  const state = observed[place];
  const put = <T>(list: readonly T[], thing: T, text: (thing: T) => string): T[] =>
    ends ? remove(list, thing, text) : [...list, thing];
  switch (fact.kind) {
    case "link":
      return ends ? removeLink(observed, place, fact.link.name) : addLink(observed, place, fact.link);
    case "addr":
      return change(observed, place, { addresses: put(state.addresses, fact.address, formatAddress) });
    case "route": {
      const routes = ends ? remove(state.routes, fact.route, formatRoute) : [fact.route, ...state.routes];
      return change(observed, place, { routes });
    }
    case "rule":
      return change(observed, place, { rules: put(state.rules, fact.rule, textOfRule) });
    case "neigh":
      return change(observed, place, { neighbours: put(state.neighbours, fact.neighbour, formatNeighbour) });
    case "sysctl": {
      const sysctls = new Map(state.sysctls);
      if (ends) sysctls.delete(fact.key);
      else sysctls.set(fact.key, fact.value);
      return change(observed, place, { sysctls });
    }
    case "table": {
      const table = { name: fact.name, chains: [] };
      return change(observed, place, { tables: put(state.tables, table, ({ name }) => name) });
    }
    case "gone": {
      const links = state.links.filter(({ kind, parentElsewhere }) => kind === "veth" && parentElsewhere);
      const lost = links.reduce((all, { name }) => removeLink(all, place, name), observed);
      return { ...lost, [place]: EMPTY_NAMESPACE };
    }
  }
}

function requireLink(observed: Observed, place: Place, name: string | undefined): void {
  if (name !== undefined && !observed[place].links.some((link) => link.name === name))
    throw new Error(`ENODEV: ${place} ${name}`);
}

/**
 * IPv4 refuses a route that has the key of another, and so does IPv6; both must know the link and reach the gateway.
 */
function addRoute(observed: Observed, place: Place, route: RouteState, beside: RouteRank | undefined): Observed {
  const links = [route.link, ...(route.nextHops ?? []).map(({ link }) => link)];
  for (const link of links) requireLink(observed, place, link);
  const { routes } = observed[place];
  if (beside === "first") return change(observed, place, { routes: [route, ...routes] });
  if (beside === "last") return change(observed, place, { routes: [...routes, route] });
  return change(observed, place, { routes: add(routes, route, keyOfRoute) });
}

/** Throws the kernel's refusals. */
export function applyOperation(observed: Observed, operation: Operation): Observed {
  switch (operation.kind) {
    case "add-veth": {
      const { host, pod } = operation.veth;
      const off = { index: 0, kind: "veth", loopback: false, up: false, carrier: true };
      const plain = { ...off, alias: "", group: 0, master: undefined };
      for (const place of PLACES) {
        if (observed[place].links.some(({ name }) => name === operation.veth[place].name))
          throw new Error("EEXIST: veth");
      }
      const half = addLink(observed, "host", { ...plain, ...host, peer: pod.name });
      return addLink(half, "pod", { ...plain, ...pod, peer: host.name });
    }
    case "delete-veth":
      return removeLink(observed, "host", operation.veth.host.name);
    case "set-link": {
      const { place, link, to } = operation;
      requireLink(observed, place, link);
      const said = Object.fromEntries(Object.entries(to).filter(([, value]) => value !== undefined));
      const links = observed[place].links.map((each) => (each.name === link ? { ...each, ...said } : each));
      return change(observed, place, { links });
    }
    case "add-device":
    case "delete-device":
    case "set-bond":
    case "try-member":
      throw new Error(`The coordinator makes no devices: ${operation.kind}`);
    case "add-alt-name":
    case "delete-alt-name":
      throw new Error(`The planners record no addresses: ${operation.kind}`);
    case "set-sysctl": {
      const { place, key, to } = operation;
      const [, , link = "all"] = key.split("/");
      if (link !== "all") requireLink(observed, place, link);
      return change(observed, place, { sysctls: new Map(observed[place].sysctls).set(key, to) });
    }
    case "add-route":
      return addRoute(observed, operation.place, operation.route, operation.beside);
    case "delete-route": {
      const { place, route } = operation;
      if (!observed[place].routes.some((other) => formatRoute(other) === formatRoute(route)))
        throw new Error(`ESRCH: ${formatRoute(route)}`);
      return change(observed, place, { routes: remove(observed[place].routes, route, formatRoute) });
    }
    default:
      return applyPlain(observed, operation);
  }
}

type Plain = Extract<Operation, { readonly kind: `${string}-${"address" | "neighbour" | "rule" | "table"}` }>;

function applyPlain(observed: Observed, operation: Plain): Observed {
  const [place, state] = [operation.place, observed[operation.place]];
  const adds = operation.kind.startsWith("add-");
  const put = <T>(list: readonly T[], thing: T, key: (thing: T) => string): T[] =>
    adds ? add(list, thing, key) : remove(list, thing, key);
  if ("address" in operation) {
    if (adds) requireLink(observed, place, operation.address.link);
    return change(observed, place, { addresses: put(state.addresses, operation.address, formatAddress) });
  }
  if ("neighbour" in operation) {
    const { neighbour } = operation;
    if (adds) requireLink(observed, place, neighbour.link);
    const clash = state.neighbours.some((other) => other.link === neighbour.link && equalIp(other.ip, neighbour.ip));
    if (adds && clash) throw new Error(`EEXIST: neighbour ${formatIp(neighbour.ip)}`);
    return change(observed, place, { neighbours: put(state.neighbours, neighbour, formatNeighbour) });
  }
  if ("rule" in operation) return change(observed, place, { rules: put(state.rules, operation.rule, textOfRule) });
  const rest = state.tables.filter((each) => each !== operation.before);
  return change(observed, place, { tables: put(rest, operation.table, ({ name }) => name) });
}

/** All of them, in order. */
export function applyAll(observed: Observed, operations: readonly Operation[]): Observed {
  return operations.reduce(applyOperation, observed);
}

/**
 * Lists the state, to compare two moments by: in no order, except that the first of several routes of one destination
 * and metric is told.
 */
export function inventory(observed: Observed): string[] {
  return PLACES.flatMap((place) => {
    const { links, addresses, routes, rules, neighbours, sysctls, tables } = observed[place];
    return [
      ...links.map(({ index: _, parent: __, ...link }) => `link ${JSON.stringify(link)}`),
      ...addresses.map((each) => `addr ${formatAddress(each)}`),
      ...routes.map((each) => {
        const row = routes.filter((other) => keyOfRoute(other) === keyOfRoute(each));
        return `route ${each.destination.ip.family} ${formatRoute(each)}${row.length > 1 && row[0] === each ? " (first)" : ""}`;
      }),
      ...rules.map((each) => `rule ${textOfRule(each)}`),
      ...neighbours.map((each) => `neigh ${formatNeighbour(each)}`),
      ...[...sysctls].map(([key, value]) => `sysctl ${key}=${value}`),
      ...tables.map(({ name, chains }) => `table ${name} ${chains.length}`),
    ].map((line) => `${place}: ${line}`);
  }).sort();
}
