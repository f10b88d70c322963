/**
 * Applies one operation to the kernel, synchronously: the process does nothing else between two operations.
 * link-remover.ts deletes veths, which takes milliseconds.
 * Effects: those of the open namespaces.
 */
import { invariant } from "../lib/invariant.ts";
import type { Operation, Veth } from "../plan/operation.ts";
import type { LinkSettings, Place } from "../plan/state.ts";
import { createDevice, deleteDevice, setBond, tryMember } from "./devices.ts";
import { ENODEV, ENOENT } from "./errno.ts";
import { deleteAddress, newAddress } from "./netlink/address/requests.ts";
import type { Conversation, Request } from "./netlink/conversation.ts";
import { NetlinkError } from "./netlink/error.ts";
import type { LinkChange } from "./netlink/link/link.ts";
import { addAltName, deleteAltName, findLink, linkChange, newLink, setLink } from "./netlink/link/requests.ts";
import { NUD_PERMANENT } from "./netlink/neighbour/constants.ts";
import { neighbourOf } from "./netlink/neighbour/neighbour.ts";
import { deleteNeighbour, listNeighbours, newNeighbour, putNeighbour } from "./netlink/neighbour/requests.ts";
import { createTable, deleteTable } from "./netlink/nftables/requests.ts";
import { deleteWholeRoute, type ListedRoutes, newRoute } from "./netlink/route/requests.ts";
import { deleteWholeRule, type ListedRules, newRule } from "./netlink/rule/requests.ts";
import type { NamespaceSource } from "./open-namespace.ts";
import { addressFrom, type IndexOf, neighbourFrom, routeFrom } from "./state-values.ts";
import { SysctlError, writeSysctl } from "./sysctl.ts";

export type Namespaces = Readonly<Record<Place, NamespaceSource>>;

/** Returns the value; throws NetlinkError if it is undefined because its link does not exist. */
function requireLink<T>(value: T | undefined, link: string | undefined): T {
  if (value !== undefined) return value;
  const operation = link === undefined ? "find the link of a next hop" : `find link "${link}"`;
  throw new NetlinkError({ operation, errno: ENODEV });
}

function newVeth({ host, pod }: Veth, namespaces: Namespaces): Request {
  const peer = { name: pod.name, mac: pod.mac, netnsFd: namespaces.pod.fd, queues: 1 };
  return newLink({ name: host.name, mac: host.mac, kind: { kind: "veth" }, queues: 1, peer });
}

/** Returns the settings in the kernel's terms, with the index of the master. */
function changeFrom({ master, ...settings }: LinkSettings, indexOf: IndexOf): LinkChange {
  if (master === undefined) return settings;
  return { ...settings, master: master === "" ? 0 : requireLink(indexOf(master), master) };
}

/** Changes the link. The kernel drops all neighbours when a MAC changes; the permanent ones are added again. */
function setKeepingNeighbours(route: Conversation, index: number, settings: LinkChange): void {
  const known = settings.mac === undefined ? [] : listNeighbours(route, index);
  const fixed = known.filter(({ state }) => (state & NUD_PERMANENT) !== 0).flatMap((one) => neighbourOf(one) ?? []);
  try {
    setLink(route, index, settings);
  } finally {
    for (const one of fixed) putNeighbour(route, one);
  }
}

/** For each namespace, the routes and rules that consecutive deletions have listed. Other operations discard them. */
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
 * Returns the link's name, and the change of it that equals setting the sysctl but needs no visit of the namespace;
 * undefined if there is none.
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
 * Returns the operation as one rtnetlink request, with its namespace; undefined if it is more than one, or none. Throws
 * NetlinkError if its link does not exist.
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
  invariant(operation.kind !== "delete-veth", "A veth must be deleted by the link remover");
  const single = requestOf(operation, namespaces, (place, link) => findLink(namespaces[place].route, link)?.index);
  if (single !== undefined) {
    state.clear();
    namespaces[single.place].route.request(single.request);
  } else if ("place" in operation) applySteps(operation, namespaces[operation.place], state);
}

/** Applies an operation that is not one request. The deletion of a link's object succeeds without the link. */
function applySteps(
  operation: Extract<Operation, { readonly place: Place }>,
  source: NamespaceSource,
  state: ListedState,
): void {
  const { kind } = operation;
  const { route } = source;
  const listed = listedStateOf(state, source, kind);
  const indexOf: IndexOf = (name) => findLink(route, name)?.index;
  switch (operation.kind) {
    case "add-device":
      createDevice(route, operation.device);
      return;
    case "delete-device":
      deleteDevice(route, operation.device);
      return;
    case "set-bond":
      setBond(route, operation.link, operation.to);
      return;
    case "try-member":
      tryMember(route, operation.link, operation.bond);
      return;
    case "set-link": {
      const index = requireLink(indexOf(operation.link), operation.link);
      setKeepingNeighbours(route, index, changeFrom(operation.to, indexOf));
      return;
    }
    case "add-alt-name":
    case "delete-alt-name": {
      const setName = kind === "add-alt-name" ? addAltName : deleteAltName;
      setName(route, requireLink(indexOf(operation.link), operation.link), operation.altName);
      return;
    }
    case "set-sysctl":
      writeSysctl(source, operation.key, operation.to);
      return;
    case "delete-address": {
      const address = addressFrom(operation.address, indexOf);
      if (address !== undefined) deleteAddress(route, address);
      return;
    }
    case "delete-neighbour": {
      const neighbour = neighbourFrom(operation.neighbour, indexOf);
      if (neighbour !== undefined) deleteNeighbour(route, neighbour);
      return;
    }
    case "delete-route": {
      const found = routeFrom(operation.route, indexOf);
      if (found !== undefined) deleteWholeRoute(route, found, listed.routes);
      return;
    }
    case "delete-rule":
      deleteWholeRule(route, operation.rule, listed.rules);
      return;
    case "add-table":
      createTable(source.netfilter, operation.table, operation.before !== undefined);
      return;
    case "delete-table":
      deleteTable(source.netfilter, operation.table.name);
  }
}

/** Returns whether the error means that the object to change, or its link, does not exist. */
export function isGone(error: unknown): boolean {
  if (error instanceof NetlinkError) return error.errno === ENODEV;
  return error instanceof SysctlError && error.errno === ENOENT;
}
