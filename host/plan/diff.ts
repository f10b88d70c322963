/**
 * What has to be done so that a plan holds: an ordered list of operations, empty when it holds already.
 * What is new comes before what goes, so that there is a way at every moment; only where the kernel has room for one, the old one goes
 * first.
 */
import { formatIp } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import type { NftTable } from "./nft-table.ts";
import type { Operation, Veth } from "./operation.ts";
import type { Owned, Plan, Wanted } from "./plan.ts";
import {
  type AddressState,
  type LinkSettings,
  type LinkState,
  type NamespaceState,
  type NeighbourState,
  type Observed,
  PLACES,
  type Place,
  type RouteState,
  type RuleState,
} from "./state.ts";
import { formatAddress, formatNeighbour, formatRoute, formatRule } from "./text.ts";

/** How things of one kind are told apart: `key` is what the kernel has room for once, `value` is all that counts. */
interface Identity<T> {
  readonly key: (thing: T) => string;
  readonly value: (thing: T) => string;
}

/** What does not depend on the order of keys, nor on who made it: the text of a value. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (part instanceof Uint8Array) return Array.from(part);
    const isRecord = typeof part === "object" && part !== null && !Array.isArray(part);
    return isRecord ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part;
  });
}

/** Who made it makes no difference to a packet. */
const routeIdentity: Identity<RouteState> = {
  key: ({ destination, table, metric, tos, source }) =>
    [formatPrefix(destination), table, metric, tos, source && formatPrefix(source)].join(" "),
  value: (route) => formatRoute({ ...route, protocol: 0 }),
};

const ruleText = (rule: RuleState): string => `${rule.family} ${formatRule({ ...rule, protocol: 0 })}`;

const ruleIdentity: Identity<RuleState> = { key: ruleText, value: ruleText };

const neighbourIdentity: Identity<NeighbourState> = {
  key: ({ link, ip }) => `${link} ${formatIp(ip)}`,
  value: formatNeighbour,
};

const addressIdentity: Identity<AddressState> = { key: formatAddress, value: formatAddress };

const tableIdentity: Identity<NftTable> = {
  key: ({ name }) => name,
  value: ({ sets, ...table }) => {
    const inOrder = sets.map(({ name, interfaces }) => ({ name, interfaces: [...interfaces].sort() }));
    return textOf({ ...table, sets: inOrder });
  },
};

/** The same with each text made once; owned things are among the observed. */
function cached<T>({ key, value }: Identity<T>): Identity<T> {
  const once = (make: (thing: T) => string): ((thing: T) => string) => {
    const texts = new Map<T, string>();
    return (thing) => {
      const text = texts.get(thing) ?? make(thing);
      texts.set(thing, text);
      return text;
    };
  };
  const values = once(value);
  return { key: key === value ? values : once(key), value: values };
}

interface Change<T> {
  /** Its key is held by something else of ours, which goes first; routes may stand several to a key. */
  readonly instead: readonly T[];
  readonly add: T;
}

interface Changes<T> {
  readonly adds: readonly Change<T>[];
  readonly deletes: readonly T[];
}

/** Texts of what is there, by key. Made once: a pod may have very many routes. */
function rowsOf<T>({ key, value }: Identity<T>, observed: readonly T[]): Map<string, string[]> {
  const rows = new Map<string, string[]>();
  for (const thing of observed) {
    const row = rows.get(key(thing));
    if (row === undefined) rows.set(key(thing), [value(thing)]);
    else row.push(value(thing));
  }
  return rows;
}

/** Of several to a key the outer ones go first, so that what is taken back can be put at an end of their row. */
function outerFirst<T>(identity: Identity<T>, goes: readonly T[], observed: readonly T[]): T[] {
  const { key, value } = identity;
  if (goes.length === 0) return [];
  const gone = new Set(goes.map(value));
  const rows = rowsOf(identity, observed);
  const isInFront = (thing: T): boolean => {
    const row = rows.get(key(thing)) ?? [];
    const stays = row.findIndex((text) => !gone.has(text));
    return stays < 0 || row.indexOf(value(thing)) < stays;
  };
  return [...goes.filter(isInFront), ...goes.filter((thing) => !isInFront(thing)).reverse()];
}

const NOTHING: ReadonlySet<string> = new Set();

function compare<T>(
  identity: Identity<T>,
  wanted: readonly T[],
  observed: readonly T[],
  owned: readonly T[],
): Changes<T> {
  const remembered = cached(identity);
  const { key, value } = remembered;
  // Texts cost: those of a node with many pods are made only when a wish may be among them.
  const there = wanted.length === 0 ? NOTHING : new Set(observed.map(value));
  const wishes = new Map(wanted.map((thing) => [value(thing), thing]));
  const unwanted = owned.filter((thing) => !wishes.has(value(thing)));
  const goes = outerFirst(remembered, unwanted, observed);
  const inTheWay = Map.groupBy(goes, key);
  const adds = [...wishes]
    .filter(([text]) => !there.has(text))
    .map(([, add]) => {
      const instead = inTheWay.get(key(add)) ?? [];
      inTheWay.delete(key(add));
      return { instead, add };
    });
  const replaced = new Set(adds.flatMap(({ instead }) => instead));
  return { adds, deletes: goes.filter((thing) => !replaced.has(thing)) };
}

/** Operations of one kind of thing, made by `operation`. */
function operationsOf<T>(
  { adds, deletes }: Changes<T>,
  operation: (verb: "add" | "delete", thing: T) => Operation,
): { adds: Operation[]; deletes: Operation[] } {
  return {
    adds: adds.flatMap(({ instead, add }) => [
      ...instead.map((thing) => operation("delete", thing)),
      operation("add", add),
    ]),
    deletes: deletes.map((thing) => operation("delete", thing)),
  };
}

/** A link as the kernel makes it. */
const NEW_LINK: Required<Omit<LinkSettings, "mac" | "master">> = { up: false, alias: "", group: 0 };

function settingsOf(link: LinkState | undefined, mac: LinkSettings["mac"]): LinkSettings {
  return link === undefined ? { ...NEW_LINK, mac } : link;
}

function linkOperations(place: Place, wanted: Wanted, observed: NamespaceState, veth: Veth | undefined): Operation[] {
  return [...wanted.links].flatMap(([name, wish]): Operation[] => {
    const link = observed.links.find((other) => other.name === name);
    const now = settingsOf(link, veth?.[place].mac);
    const keys = (["mac", "alias", "group", "up"] as const).filter(
      (key) => wish[key] !== undefined && wish[key] !== now[key],
    );
    if (keys.length === 0) return [];
    const pick = (settings: LinkSettings): LinkSettings =>
      Object.fromEntries(keys.map((key) => [key, settings[key]])) as LinkSettings;
    return [{ kind: "set-link", place, link: name, from: pick(now), to: pick(wish) }];
  });
}

function sysctlOperations(place: Place, { sysctls }: Wanted, observed: NamespaceState): Operation[] {
  return [...sysctls]
    .filter(([key, to]) => observed.sysctls.get(key) !== to)
    .map(([key, to]) => ({ kind: "set-sysctl", place, key, from: observed.sysctls.get(key), to }));
}

/** What leads over a link goes with the link. */
function withoutLink(owned: Owned, link: string | undefined): Owned {
  if (link === undefined) return owned;
  const stays = (thing: { readonly link?: string | undefined }): boolean => thing.link !== link;
  return {
    ...owned,
    addresses: owned.addresses.filter(stays),
    neighbours: owned.neighbours.filter(stays),
    routes: owned.routes.filter(stays),
  };
}

/** A gateway must be reachable when a route over it is made: what is on the link comes first, and goes last. */
function reachOf({ gateway, nextHops }: RouteState): number {
  return gateway === undefined && nextHops === undefined ? 0 : 1;
}

function byReach({ adds, deletes }: Changes<RouteState>): Changes<RouteState> {
  return {
    adds: [...adds].sort((a, b) => reachOf(a.add) - reachOf(b.add)),
    deletes: [...deletes].sort((a, b) => reachOf(b) - reachOf(a)),
  };
}

/** Tells of each deletion where the route stands among those with its key that are there at that moment. */
function withRanks(stages: Stages, observed: readonly RouteState[]): Stages {
  if (stages.adds.length + stages.deletes.length === 0) return stages;
  const rows = rowsOf(routeIdentity, observed);
  const rank = (operation: Operation): Operation => {
    if (operation.kind !== "add-route" && operation.kind !== "delete-route") return operation;
    const key = routeIdentity.key(operation.route);
    const text = routeIdentity.value(operation.route);
    const row = rows.get(key) ?? [];
    const at = row.indexOf(text);
    rows.set(key, operation.kind === "add-route" ? [...row, text] : row.toSpliced(at, 1));
    if (operation.kind === "add-route" || row.length < 2) return operation;
    return { ...operation, beside: at === row.length - 1 ? "last" : "first" };
  };
  return { adds: stages.adds.map(rank), deletes: stages.deletes.map(rank) };
}

interface Stages {
  readonly adds: Operation[];
  readonly deletes: Operation[];
}

function placeOperations(place: Place, plan: Plan, observed: NamespaceState, gone: string | undefined): Stages {
  const wanted = plan.wanted[place];
  const owned = withoutLink(plan.owned[place], gone);
  const neighbours = operationsOf(
    compare(neighbourIdentity, wanted.neighbours, observed.neighbours, owned.neighbours),
    (verb, neighbour) => ({ kind: `${verb}-neighbour`, place, neighbour }),
  );
  const routes = withRanks(
    operationsOf(
      byReach(compare(routeIdentity, wanted.routes, observed.routes, owned.routes)),
      (verb, route): Operation => ({ kind: `${verb}-route`, place, route }),
    ),
    observed.routes,
  );
  const tables = operationsOf(compare(tableIdentity, wanted.tables, observed.tables, owned.tables), (verb, table) => ({
    kind: `${verb}-table`,
    place,
    table,
  }));
  const rules = operationsOf(compare(ruleIdentity, wanted.rules, observed.rules, owned.rules), (verb, rule) => ({
    kind: `${verb}-rule`,
    place,
    rule,
  }));
  const addresses = operationsOf(
    compare(addressIdentity, [], observed.addresses, owned.addresses),
    (verb, address) => ({ kind: `${verb}-address`, place, address }),
  );
  return {
    adds: [neighbours, routes, tables, rules].flatMap(({ adds }) => adds),
    deletes: [rules, tables, routes, neighbours, addresses].flatMap(({ deletes }) => deletes),
  };
}

/** The namespace once the link is deleted. */
function afterLink(state: NamespaceState, name: string): NamespaceState {
  return {
    ...state,
    ...withoutLink(state, name),
    links: state.links.filter((link) => link.name !== name),
    sysctls: new Map([...state.sysctls].filter(([key]) => !key.split("/").includes(name))),
  };
}

/** What has to be done, in this order, so that the plan holds. Doing it twice is doing it once: then nothing is left. */
export function diffPlan(observed: Observed, plan: Plan): Operation[] {
  const { veth } = plan;
  const has = (place: Place): boolean => observed[place].links.some(({ name }) => name === veth?.pair[place].name);
  const isThere = veth !== undefined && has("host");
  // A host's end whose other end is not in this pod is left from another sandbox that had the container's name.
  const isStale = veth?.wanted === true && isThere && !has("pod");
  const isNew = veth?.wanted === true && (!isThere || isStale);
  const isGone = veth?.wanted === false && isThere;
  const goes = isGone || isStale ? veth.pair : undefined;
  const now = isStale ? { ...observed, host: afterLink(observed.host, veth.pair.host.name) } : observed;
  const stages = PLACES.map((place) => placeOperations(place, plan, now[place], goes?.[place].name));
  return [
    ...(isStale ? [{ kind: "delete-veth" as const, veth: veth.pair }] : []),
    ...(isNew ? [{ kind: "add-veth" as const, veth: veth.pair }] : []),
    ...PLACES.flatMap((place) => sysctlOperations(place, plan.wanted[place], now[place])),
    ...PLACES.flatMap((place) => linkOperations(place, plan.wanted[place], now[place], isNew ? veth.pair : undefined)),
    ...stages.flatMap(({ adds }) => adds),
    ...stages.flatMap(({ deletes }) => deletes),
    ...(isGone ? [{ kind: "delete-veth" as const, veth: veth.pair }] : []),
  ];
}
