/**
 * The difference between a plan and the observed state: an ordered list of operations, empty if the plan already
 * holds. Additions come before deletions, so that there is a route at every moment; only where the kernel allows a
 * single object does the old one go first.
 */
import { formatIp } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import type { NftTable } from "./nft-table.ts";
import type { Operation, Veth } from "./operation.ts";
import type { Owned, Plan, Wanted } from "./plan.ts";
import {
  type AddressState,
  type LinkSettings,
  type NamespaceState,
  type NeighbourState,
  type Observed,
  PLACES,
  type Place,
  type RouteState,
  type RuleState,
} from "./state.ts";
import { formatNeighbour, formatRoute, formatRule } from "./text.ts";

/** Identity of objects of one kind: the kernel keeps one object per `key`; objects with the same `value` are equal. */
interface Identity<T> {
  readonly key: (thing: T) => string;
  readonly value: (thing: T) => string;
}

/** Returns a text of the value that does not depend on the order of keys. Keys without a value count as absent. */
function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (value instanceof Uint8Array) return `[${value.join(",")}]`;
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`;
  const record = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(record)
    .filter((key) => record[key] !== undefined)
    .sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${textOf(record[key])}`).join(",")}}`;
}

/** Compares routes without their protocol: it has no effect on packets. */
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

/** A link has an address once, whatever its scope. Replacing the last one would delete the link's IPv4 routes. */
const addressText = ({ prefix, link }: AddressState): string => `${formatPrefix(prefix)} dev ${link}`;

const addressIdentity: Identity<AddressState> = { key: addressText, value: addressText };

/** The texts of tables. Wanted tables, and the node's until they change, are the same objects for each pod. */
const tableTexts = new WeakMap<NftTable, string>();

const tableIdentity: Identity<NftTable> = {
  key: ({ name }) => name,
  value: (table) => tableTexts.getOrInsertComputed(table, () => textOf(table)),
};

/** Returns whether the tables have the same chains and rules. */
export function isSameTable(a: NftTable, b: NftTable): boolean {
  return tableIdentity.value(a) === tableIdentity.value(b);
}

/** Returns the identity with each text computed only once; owned objects are among the observed ones. */
function cached<T>({ key, value }: Identity<T>): Identity<T> {
  const once = (make: (thing: T) => string): ((thing: T) => string) => {
    const texts = new Map<T, string>();
    return (thing) => texts.getOrInsertComputed(thing, () => make(thing));
  };
  const values = once(value);
  return { key: key === value ? values : once(key), value: values };
}

interface Changes<T> {
  /** `instead`: own objects with the same key, which have to go first; there may be several routes to a key. */
  readonly adds: readonly { readonly instead: readonly T[]; readonly add: T }[];
  readonly deletes: readonly T[];
}

/** Returns the texts of the observed objects by key. Computed once: a pod may have very many routes. */
function rowsOf<T>({ key, value }: Identity<T>, observed: readonly T[]): Map<string, string[]> {
  const rows = new Map<string, string[]>();
  for (const thing of observed) {
    const row = rows.get(key(thing));
    if (row === undefined) rows.set(key(thing), [value(thing)]);
    else row.push(value(thing));
  }
  return rows;
}

/** Orders deletions among objects with one key from the outside in: undoing restores each at an end of the row. */
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
  // Formatting is expensive on nodes with many pods; skip it if nothing is wanted.
  const present = wanted.length === 0 ? NOTHING : new Set(observed.map(value));
  const byText = new Map(wanted.map((thing) => [value(thing), thing]));
  // A plan may own an object for several reasons, such as a default route of Berth's in the main table.
  const unwanted = [...new Set(owned)].filter((thing) => !byText.has(value(thing)));
  const surplus = outerFirst(remembered, unwanted, observed);
  const inTheWay = Map.groupBy(surplus, key);
  const adds = [...byText]
    .filter(([text]) => !present.has(text))
    .map(([, add]) => {
      const instead = inTheWay.get(key(add)) ?? [];
      inTheWay.delete(key(add));
      return { instead, add };
    });
  const replaced = new Set(adds.flatMap(({ instead }) => instead));
  return { adds, deletes: surplus.filter((thing) => !replaced.has(thing)) };
}

/** Returns the operations of one kind, each made by `operation`. */
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

/** Settings of a new link. */
const NEW_LINK: Required<Omit<LinkSettings, "mac" | "master">> = { up: false, alias: "", group: 0, mtu: 1_500 };

function linkOperations(place: Place, wanted: Wanted, observed: NamespaceState, veth: Veth | undefined): Operation[] {
  return [...wanted.links].flatMap(([name, settings]): Operation[] => {
    const link = observed.links.find((other) => other.name === name);
    const now = link === undefined ? { ...NEW_LINK, mac: veth?.[place].mac } : link;
    const keys = (["mac", "alias", "group", "mtu", "up"] as const).filter(
      (key) => settings[key] !== undefined && settings[key] !== now[key],
    );
    // A change of a link that is up makes the kernel walk all IPv6 routes of the namespace (net/ipv6/addrconf.c,
    // addrconf_notify).
    const isLast = (key: string): boolean => key === "up" && settings.up === true;
    return [keys.filter((key) => !isLast(key)), keys.filter(isLast)].flatMap((some): Operation[] => {
      const pick = (source: LinkSettings): LinkSettings =>
        Object.fromEntries(some.map((key) => [key, source[key]])) as LinkSettings;
      return some.length === 0 ? [] : [{ kind: "set-link", place, link: name, from: pick(now), to: pick(settings) }];
    });
  });
}

function sysctlOperations(place: Place, { sysctls }: Wanted, observed: NamespaceState): Operation[] {
  return [...sysctls]
    .filter(([key, to]) => observed.sysctls.get(key) !== to)
    .map(([key, to]) => ({ kind: "set-sysctl", place, key, from: observed.sysctls.get(key), to }));
}

/** Returns the objects left when the link is deleted: the kernel deletes its addresses, neighbours and routes. */
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

/** A gateway must be reachable when a route over it is added: routes on the link are added first and deleted last. */
function reachOf({ gateway, nextHops }: RouteState): number {
  return gateway === undefined && nextHops === undefined ? 0 : 1;
}

function byReach({ adds, deletes }: Changes<RouteState>): Changes<RouteState> {
  return {
    adds: [...adds].sort((a, b) => reachOf(a.add) - reachOf(b.add)),
    deletes: [...deletes].sort((a, b) => reachOf(b) - reachOf(a)),
  };
}

/**
 * Returns the keys of multipath routes beside which the kernel may have others that it does not list: an IPv6 dump
 * skips routes between the next hops of a route, for example a default route that a router advertised
 * (net/ipv6/ip6_fib.c, fib6_dump_node).
 */
function keysThatHide({ key }: Identity<RouteState>, observed: readonly RouteState[]): ReadonlySet<string> {
  const hides = ({ destination, nextHops }: RouteState) => destination.ip.family === 6 && nextHops !== undefined;
  return new Set(observed.filter(hides).map(key));
}

/**
 * Adds the position among routes with the same key to each operation on a route that has, or may have, such routes
 * beside it at that moment: an addition takes the place of a route that was deleted in front.
 */
function withRanks(identity: Identity<RouteState>, stages: Stages, observed: readonly RouteState[]): Stages {
  if (stages.deletes.length === 0 && stages.adds.every(({ kind }) => kind === "add-route")) return stages;
  const rows = rowsOf(identity, observed);
  const fronts = new Map([...rows].map(([key, [front]]) => [key, front]));
  const hiding = keysThatHide(identity, observed);
  const rank = (operation: Operation): Operation => {
    if (operation.kind !== "add-route" && operation.kind !== "delete-route") return operation;
    const key = identity.key(operation.route);
    const text = identity.value(operation.route);
    const row = rows.get(key) ?? [];
    const isAdd = operation.kind === "add-route";
    const at = isAdd ? (row[0] === fronts.get(key) ? row.length : 0) : row.indexOf(text);
    const others = isAdd ? row.length : row.length - 1;
    rows.set(key, isAdd ? row.toSpliced(at, 0, text) : row.toSpliced(at, 1));
    if (others === 0 && !hiding.has(key)) return operation;
    return { ...operation, beside: at === others ? "last" : "first" };
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
  const routeTexts = cached(routeIdentity);
  const routes = withRanks(
    routeTexts,
    operationsOf(
      byReach(compare(routeTexts, wanted.routes, observed.routes, owned.routes)),
      (verb, route): Operation => ({ kind: `${verb}-route`, place, route }),
    ),
    observed.routes,
  );
  const changed = compare(tableIdentity, wanted.tables, observed.tables, owned.tables);
  const tables = {
    // An agent that is killed between two operations leaves no NIC without its rules.
    adds: changed.adds.map(
      ({ instead: [before], add: table }): Operation => ({ kind: "add-table", place, table, before }),
    ),
    deletes: changed.deletes.map((table): Operation => ({ kind: "delete-table", place, table })),
  };
  const rules = operationsOf(compare(ruleIdentity, wanted.rules, observed.rules, owned.rules), (verb, rule) => ({
    kind: `${verb}-rule`,
    place,
    rule,
  }));
  const addresses = operationsOf(
    compare(addressIdentity, wanted.addresses, observed.addresses, owned.addresses),
    (verb, address) => ({ kind: `${verb}-address`, place, address }),
  );
  return {
    adds: [addresses, neighbours, routes, rules, tables].flatMap(({ adds }) => adds),
    deletes: [rules, tables, routes, neighbours, addresses].flatMap(({ deletes }) => deletes),
  };
}

function afterLink(state: NamespaceState, name: string): NamespaceState {
  return {
    ...state,
    ...withoutLink(state, name),
    links: state.links.filter((link) => link.name !== name),
    sysctls: new Map([...state.sysctls].filter(([key]) => !key.split("/").includes(name))),
  };
}

/**
 * The node's links are set first, so that operations in the pod are sent together with its links, and find the pair
 * with a carrier.
 */
const LINK_PLACES: readonly Place[] = ["host", "pod"];

/** Returns the operations, in order, after which the plan holds. Once they are applied, the difference is empty. */
export function diffPlan(observed: Observed, plan: Plan): Operation[] {
  const { veth } = plan;
  const has = (place: Place): boolean => observed[place].links.some(({ name }) => name === veth?.pair[place].name);
  const isThere = veth !== undefined && has("host");
  // A host end whose other end is not in this pod is left from an older sandbox of the same container ID.
  const isStale = veth?.wanted === true && isThere && !has("pod");
  const isNew = veth?.wanted === true && (!isThere || isStale);
  const isGone = veth?.wanted === false && isThere;
  const goes = isGone || isStale ? veth.pair : undefined;
  const now = isStale ? { ...observed, host: afterLink(observed.host, veth.pair.host.name) } : observed;
  const stages = PLACES.map((place) => placeOperations(place, plan, now[place], goes?.[place].name));
  return [
    ...(isStale ? [{ kind: "delete-veth" as const, veth: veth.pair }] : []),
    ...(isNew ? [{ kind: "add-veth" as const, veth: veth.pair }] : []),
    ...LINK_PLACES.flatMap((place) => [
      ...sysctlOperations(place, plan.wanted[place], now[place]),
      ...linkOperations(place, plan.wanted[place], now[place], isNew ? veth.pair : undefined),
    ]),
    ...stages.flatMap(({ adds }) => adds),
    ...stages.flatMap(({ deletes }) => deletes),
    ...(isGone ? [{ kind: "delete-veth" as const, veth: veth.pair }] : []),
  ];
}
