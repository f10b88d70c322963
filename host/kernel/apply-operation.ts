/**
 * Applies one operation to the kernel, synchronously: the process does nothing else between two operations. The
 * deletion of a veth, which takes milliseconds, is in link-remover.ts.
 * Effects: those of the open namespaces.
 */
import { invariant } from "../lib/invariant.ts";
import type { Operation, RouteRank, Veth } from "../plan/operation.ts";
import type { LinkSettings, Place } from "../plan/state.ts";
import { createDevice, deleteDevice, setBond, tryMember } from "./devices.ts";
import { ENODEV, ENOENT } from "./errno.ts";
import type { Address } from "./netlink/address/address.ts";
import { createAddress, deleteAddress, newAddress } from "./netlink/address/requests.ts";
import type { Conversation, Request } from "./netlink/conversation.ts";
import { NetlinkError } from "./netlink/error.ts";
import type { LinkChange } from "./netlink/link/link.ts";
import { addAltName, deleteAltName, findLink, linkChange, newLink, setLink } from "./netlink/link/requests.ts";
import { NUD_PERMANENT } from "./netlink/neighbour/constants.ts";
import { type Neighbour, neighbourOf } from "./netlink/neighbour/neighbour.ts";
import { deleteNeighbour, listNeighbours, newNeighbour, putNeighbour } from "./netlink/neighbour/requests.ts";
import { createTable, deleteTable } from "./netlink/nftables/requests.ts";
import { createRoute, deleteWholeRoute, type ListedRoutes, newRoute } from "./netlink/route/requests.ts";
import type { Route } from "./netlink/route/route.ts";
import { createRule, deleteWholeRule, type ListedRules, newRule } from "./netlink/rule/requests.ts";
import type { NamespaceSource } from "./open-namespace.ts";
import { addressFrom, type IndexOf, neighbourFrom, routeFrom } from "./state-values.ts";
import { SysctlError, writeSysctl } from "./sysctl.ts";

/** Both namespaces. */
export type Namespaces = Readonly<Record<Place, NamespaceSource>>;

/** Looks the link up each time: a name may have been reassigned between two calls. */
function indexIn({ route }: NamespaceSource): IndexOf {
  return (name) => findLink(route, name)?.index;
}

/** Returns the value; throws NetlinkError if it is undefined because its link does not exist. */
function requireLink<T>(value: T | undefined, link: string | undefined): T {
  if (value !== undefined) return value;
  const operation = link === undefined ? "find the link of a next hop" : `find link "${link}"`;
  throw new NetlinkError({ operation, errno: ENODEV });
}

/** Returns the request that creates the pair in the host's namespace, with the other end in the pod's. */
function newVeth({ host, pod }: Veth, namespaces: Namespaces): Request {
  const peer = { name: pod.name, mac: pod.mac, netnsFd: namespaces.pod.fd, queues: 1 };
  return newLink({ name: host.name, mac: host.mac, kind: { kind: "veth" }, queues: 1, peer });
}

/** Returns the settings in the kernel's terms, with the index of the master. */
function changeFrom({ master, ...settings }: LinkSettings, indexOf: IndexOf): LinkChange {
  if (master === undefined) return settings;
  return { ...settings, master: master === "" ? 0 : requireLink(indexOf(master), master) };
}

/**
 * Changes the link. When its MAC changes, the kernel drops all of its neighbours; the permanent ones are added again.
 */
function setKeepingNeighbours(route: Conversation, index: number, settings: LinkChange): void {
  const known = settings.mac === undefined ? [] : listNeighbours(route, index).map(neighbourOf);
  const fixed = known.filter((one) => one !== undefined && (one.state & NUD_PERMANENT) !== 0);
  try {
    setLink(route, index, settings);
  } finally {
    for (const one of fixed) if (one !== undefined) putNeighbour(route, one);
  }
}

/** Requests that add and remove an object that belongs to a link. */
interface Requests<T> {
  readonly add: (conversation: Conversation, thing: T) => void;
  readonly remove: (conversation: Conversation, thing: T) => unknown;
}

const addresses: Requests<Address> = { add: createAddress, remove: deleteAddress };
const neighbours: Requests<Neighbour> = { add: putNeighbour, remove: deleteNeighbour };

function routesBeside(beside: RouteRank | undefined, listed: ListedRoutes): Requests<Route> {
  return {
    add: (conversation, route) => createRoute(conversation, route, beside),
    remove: (conversation, route) => deleteWholeRoute(conversation, route, listed),
  };
}

/**
 * Adds or removes the object. Adding fails without the link; removing succeeds, since the object was deleted with its
 * link.
 */
function change<T>(
  kind: Operation["kind"],
  { route }: NamespaceSource,
  requests: Requests<T>,
  { value, link }: { readonly value: T | undefined; readonly link: string | undefined },
): void {
  if (kind.startsWith("add-")) requests.add(route, requireLink(value, link));
  else if (value !== undefined) requests.remove(route, value);
}

/** Per namespace, the routes and rules that consecutive deletions have listed. Any other operation discards them. */
export type ListedState = Map<NamespaceSource, { readonly routes: ListedRoutes; readonly rules: ListedRules }>;

function listedStateOf(state: ListedState, source: NamespaceSource, kind: Operation["kind"]) {
  const before = kind === "delete-route" || kind === "delete-rule" ? state.get(source) : undefined;
  const listed = before ?? { routes: new Map(), rules: new Map() };
  state.set(source, listed);
  return listed;
}

const RP_FILTER = /^ipv4\/conf\/([^/]+)\/rp_filter$/;
const ADDRESS_GENERATION = /^ipv6\/conf\/([^/]+)\/addr_gen_mode$/;

/**
 * Returns the change of a link that is the same as setting the sysctl, and the link's name; undefined if there is
 * none. It needs no visit of the namespace.
 */
function linkChangeFrom(
  key: string,
  value: string,
): { readonly link: string; readonly change: LinkChange } | undefined {
  const filter = RP_FILTER.exec(key)?.[1];
  const link = filter ?? ADDRESS_GENERATION.exec(key)?.[1];
  if (link === undefined || link === "all" || link === "default" || !/^[012]$/.test(value)) return undefined;
  return { link, change: filter === undefined ? { addressGeneration: Number(value) } : { rpFilter: Number(value) } };
}

/** Looks up the index of a link in one of the two namespaces. */
type FindIndex = (place: Place, link: string) => number | undefined;

/**
 * Returns the one rtnetlink request that the operation consists of, with the namespace it is sent to; undefined if it
 * takes more than one, or another way. Throws NetlinkError if its link does not exist.
 */
export function requestOf(
  operation: Operation,
  namespaces: Namespaces,
  find: FindIndex,
): { readonly place: Place; readonly request: Request } | undefined {
  if (operation.kind === "add-veth") return { place: "host", request: newVeth(operation.veth, namespaces) };
  if (!("place" in operation)) return undefined;
  const { place } = operation;
  const indexOf: IndexOf = (name) => find(place, name);
  switch (operation.kind) {
    case "set-link": {
      const { mac, master, ...settings } = operation.to;
      if (mac !== undefined || master !== undefined) return undefined;
      return { place, request: linkChange(requireLink(indexOf(operation.link), operation.link), settings) };
    }
    case "set-sysctl": {
      const found = linkChangeFrom(operation.key, operation.to);
      const index = found && indexOf(found.link);
      // an absent link is reported in the words of a setting
      return index === undefined || found === undefined
        ? undefined
        : { place, request: linkChange(index, found.change) };
    }
    case "add-address": {
      const { address } = operation;
      return { place, request: newAddress(requireLink(addressFrom(address, indexOf), address.link)) };
    }
    case "add-neighbour": {
      const { neighbour } = operation;
      return { place, request: newNeighbour(requireLink(neighbourFrom(neighbour, indexOf), neighbour.link)) };
    }
    case "add-route": {
      const { route, beside } = operation;
      return { place, request: newRoute(requireLink(routeFrom(route, indexOf), route.link), beside) };
    }
    case "add-rule":
      return { place, request: newRule(operation.rule) };
    default:
      return undefined;
  }
}

/**
 * Applies the operation. Deleting an absent object succeeds; adding an existing one is an error. Must not be called
 * for the deletion of a veth. Throws NetlinkError or SysctlError; see {@link isGone}.
 */
export function applyOperation(operation: Operation, namespaces: Namespaces, state: ListedState = new Map()): void {
  const { kind } = operation;
  if ("veth" in operation) {
    invariant(kind === "add-veth", "A veth must be deleted by the link remover");
    namespaces.host.route.request(newVeth(operation.veth, namespaces));
    return;
  }
  const source = namespaces[operation.place];
  const listed = listedStateOf(state, source, kind);
  const indexOf = indexIn(source);
  switch (operation.kind) {
    case "add-device":
      createDevice(source.route, operation.device);
      return;
    case "delete-device":
      deleteDevice(source.route, operation.device);
      return;
    case "set-bond":
      setBond(source.route, operation.link, operation.to);
      return;
    case "try-member":
      tryMember(source.route, operation.link, operation.bond);
      return;
    case "set-link": {
      const index = requireLink(indexOf(operation.link), operation.link);
      setKeepingNeighbours(source.route, index, changeFrom(operation.to, indexOf));
      return;
    }
    case "add-alt-name":
    case "delete-alt-name": {
      const setName = kind === "add-alt-name" ? addAltName : deleteAltName;
      setName(source.route, requireLink(indexOf(operation.link), operation.link), operation.altName);
      return;
    }
    case "set-sysctl":
      writeSysctl(source, operation.key, operation.to);
      return;
    case "add-address":
    case "delete-address": {
      const { address } = operation;
      change(kind, source, addresses, { value: addressFrom(address, indexOf), link: address.link });
      return;
    }
    case "add-neighbour":
    case "delete-neighbour": {
      const { neighbour } = operation;
      change(kind, source, neighbours, { value: neighbourFrom(neighbour, indexOf), link: neighbour.link });
      return;
    }
    case "add-route":
    case "delete-route": {
      const { route, beside } = operation;
      change(kind, source, routesBeside(beside, listed.routes), { value: routeFrom(route, indexOf), link: route.link });
      return;
    }
    case "add-rule":
      createRule(source.route, operation.rule);
      return;
    case "delete-rule":
      deleteWholeRule(source.route, operation.rule, listed.rules);
      return;
    case "add-table":
      createTable(source.netfilter, operation.table, operation.before !== undefined);
      return;
    case "delete-table":
      deleteTable(source.netfilter, operation.table.name);
  }
}

/** Returns whether the error says that the object to change, or its link, does not exist. */
export function isGone(error: unknown): boolean {
  if (error instanceof NetlinkError) return error.errno === ENODEV;
  return error instanceof SysctlError && error.errno === ENOENT;
}
