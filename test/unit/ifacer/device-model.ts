/** A node's links, addresses and routes as values that change as the kernel's do under the operations of the ifacer. */

import { IFA_F_NODAD, IFA_F_NOPREFIXROUTE, IFA_LABEL } from "../../../host/kernel/netlink/address/constants.ts";
import { formatPrefix, maskPrefix } from "../../../host/net/prefix.ts";
import { formatBondSettings } from "../../../host/plan/bond.ts";
import { inverseOfAll, type Operation } from "../../../host/plan/operation.ts";
import type { AddressState, LinkState, NamespaceState, RouteState } from "../../../host/plan/state.ts";
import { formatAddress, formatNeighbour, formatRoute } from "../../../host/plan/text.ts";

/** A link as the kernel makes it. */
export function newLink(name: string, index: number, more: Partial<LinkState> = {}): LinkState {
  return {
    ...{ name, index, kind: "", mac: undefined, up: false, carrier: true, loopback: false, alias: "", group: 0 },
    ...{ parent: undefined, parentElsewhere: false, master: undefined, mtu: 1500 },
    ...more,
  };
}

function requireLink({ links }: NamespaceState, name: string): LinkState {
  const link = links.find((each) => each.name === name);
  if (link === undefined) throw new Error(`ENODEV: ${name}`);
  return link;
}

function change(state: NamespaceState, name: string, part: Partial<LinkState>): NamespaceState {
  requireLink(state, name);
  return { ...state, links: state.links.map((link) => (link.name === name ? { ...link, ...part } : link)) };
}

/** Link-local ones come and go with the link. */
function carries({ addresses, routes }: NamespaceState, name: string): boolean {
  const isOver = ({ link }: { readonly link?: string | undefined }): boolean => link === name;
  const isLasting = (text: string): boolean => !text.startsWith("fe80:");
  return (
    addresses.some((address) => isOver(address) && isLasting(formatAddress(address))) ||
    routes.some((route) => (isOver(route) && isLasting(formatRoute(route))) || route.nextHops?.some(isOver) === true)
  );
}

/** The route that the kernel makes with an address. */
function routeOf({ link, prefix }: AddressState): RouteState {
  const isV4 = prefix.ip.family === 4;
  return {
    ...{ destination: maskPrefix(prefix), table: 254, type: 1, protocol: 2, flags: 0, link, tos: 0, rest: [] },
    ...(isV4 ? { scope: 253, preferredSource: prefix.ip, metric: 0 } : { scope: 0, metric: 256 }),
  };
}

/** IPv4 keeps the route of the first address of a prefix. */
function withAddress(state: NamespaceState, address: AddressState): NamespaceState {
  if ((address.flags & IFA_F_NOPREFIXROUTE) !== 0) return { ...state, addresses: [...state.addresses, address] };
  const route = routeOf(address);
  const sameDestination = (other: RouteState): boolean =>
    other.protocol === 2 &&
    other.link === route.link &&
    formatPrefix(other.destination) === formatPrefix(route.destination);
  const routes = state.routes.some(sameDestination) ? state.routes : [...state.routes, route];
  return { ...state, addresses: [...state.addresses, address], routes };
}

function withoutAddress(state: NamespaceState, address: AddressState): NamespaceState {
  const [text, route] = [formatAddress(address), formatRoute(routeOf(address))];
  return {
    ...state,
    addresses: state.addresses.filter((each) => formatAddress(each) !== text),
    routes: state.routes.filter((each) => formatRoute(each) !== route),
  };
}

function setLink(state: NamespaceState, { link: name, to }: Extract<Operation, { kind: "set-link" }>): NamespaceState {
  const link = requireLink(state, name);
  if (to.master !== undefined && to.master !== "") {
    if (link.up) throw new Error(`EPERM: ${name} is up`);
    if (link.loopback || carries(state, name)) throw new Error(`${name} carries something`);
    requireLink(state, to.master);
    // A bond switches its new member on.
    return change(state, name, { master: to.master, up: true });
  }
  if (to.master === "") return change(state, name, { master: undefined, up: false });
  const parent = state.links.find(({ index }) => index === link.parent);
  if (to.up === true && link.kind === "vlan" && parent?.up === false) throw new Error(`ENETDOWN: ${name}`);
  return change(state, name, to.up === undefined ? {} : { up: to.up });
}

/** Throws when something would be cut off. */
function requireIdle(state: NamespaceState, operation: Operation): void {
  const isDown = operation.kind === "set-link" && operation.to.up === false;
  if (isDown && carries(state, operation.link)) throw new Error(`${operation.link} goes down with what it carries`);
}

/** Throws the kernel's refusals. */
function applyOperation(state: NamespaceState, operation: Operation): NamespaceState {
  switch (operation.kind) {
    case "add-device": {
      const { device } = operation;
      const { links } = state;
      if (links.some(({ name }) => name === device.name)) throw new Error(`EEXIST: ${device.name}`);
      const index = Math.max(...links.map((link) => link.index)) + 1;
      const more: Partial<LinkState> =
        device.kind === "bond"
          ? { kind: "bond", bond: device.settings, mtu: device.mtu }
          : {
              kind: "vlan",
              parent: requireLink(state, device.parent).index,
              vlan: { id: device.id, protocol: 0x8100 },
            };
      return { ...state, links: [...links, newLink(device.name, index, more)] };
    }
    case "delete-device": {
      const { name } = operation.device;
      if (state.links.some(({ master }) => master === name)) throw new Error(`${name} has members`);
      return { ...state, links: state.links.filter((link) => link.name !== name) };
    }
    case "set-bond": {
      const { bond = { numbers: {} }, up } = requireLink(state, operation.link);
      const hasMembers = state.links.some(({ master }) => master === operation.link);
      if (operation.to.numbers.mode !== undefined && (up || hasMembers)) throw new Error("EBUSY: mode");
      const settings = { ...bond, ...operation.to, numbers: { ...bond.numbers, ...operation.to.numbers } };
      return change(state, operation.link, { bond: settings });
    }
    case "try-member":
      requireLink(state, operation.bond);
      if (!requireLink(state, operation.link).up) throw new Error(`${operation.link} is down and would join`);
      return state;
    case "set-link":
      return setLink(state, operation);
    case "add-address":
      requireLink(state, operation.address.link);
      return withAddress(state, operation.address);
    case "delete-address":
      return withoutAddress(state, operation.address);
    case "add-neighbour":
      requireLink(state, operation.neighbour.link);
      return { ...state, neighbours: [...state.neighbours, operation.neighbour] };
    case "delete-neighbour": {
      const text = formatNeighbour(operation.neighbour);
      return { ...state, neighbours: state.neighbours.filter((each) => formatNeighbour(each) !== text) };
    }
    case "add-route":
      return { ...state, routes: [...state.routes, operation.route] };
    case "delete-route": {
      const text = formatRoute(operation.route);
      return { ...state, routes: state.routes.filter((each) => formatRoute(each) !== text) };
    }
    default:
      throw new Error(`The ifacer does not ${operation.kind}`);
  }
}

/** Throws the kernel's refusals, and when a link that carries addresses or routes is set down. */
export function applyAll(state: NamespaceState, operations: readonly Operation[]): NamespaceState {
  return operations.reduce((now, operation) => {
    requireIdle(now, operation);
    return applyOperation(now, operation);
  }, state);
}

/** Takes them back: a link that was down goes down again. */
export function undoAll(state: NamespaceState, operations: readonly Operation[]): NamespaceState {
  return inverseOfAll(operations).reduce(applyOperation, state);
}

/** Attributes of an address that are copied, by the words of `ip`; 4 is IFA_BROADCAST. */
export const COPIED: Readonly<Record<string, number>> = { label: IFA_LABEL, brd: 4 };

/** Returns the part of an operation's address that its line leaves out: ` nodad label e0:1` */
export function describeMore({ flags, rest = [] }: AddressState): string {
  const copied = rest.map(({ type, value }) => {
    const word = Object.entries(COPIED).find(([, each]) => each === type)?.[0];
    return ` ${word} ${Buffer.from(value)}`;
  });
  return `${(flags & IFA_F_NODAD) === 0 ? "" : " nodad"}${copied.join("")}`;
}

/** The kernel tells no target as an empty list or not at all. */
function someOf<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list?.length === 0 ? undefined : list;
}

/** Lists the state, in no order; without the kernel's routes and addresses that come with an address. */
export function inventory({ links, addresses, routes, neighbours }: NamespaceState): string[] {
  return [
    ...links.map(({ bond, ...link }) => {
      const has = bond && {
        ...bond,
        primary: bond.primary || undefined,
        arpIpTargets: someOf(bond.arpIpTargets),
        nsIp6Targets: someOf(bond.nsIp6Targets),
      };
      return `link ${JSON.stringify({ ...link, bond: has && formatBondSettings(has) })}`;
    }),
    ...addresses.map((each) => `addr ${formatAddress(each)}${describeMore({ ...each, flags: 0 })}`),
    ...routes.map((each) => `route ${formatRoute(each)}`),
    ...neighbours.map((each) => `neigh ${formatNeighbour(each)}`),
  ].sort();
}
