/**
 * Plans the fate of the addresses and routes of an interface that joins a bond, which would be cut off: the ADD is
 * refused, or they move to the bond.
 */
import { IFA_F_NODAD, IFA_F_NOPREFIXROUTE, IFA_F_PERMANENT, IFA_LABEL } from "../kernel/netlink/address/constants.ts";
import { RTPROT_KERNEL, RTPROT_RA, RTPROT_REDIRECT } from "../kernel/netlink/route/constants.ts";
import { formatIp, isLinkLocal, isMulticast } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import { formatPrefix, maskPrefix } from "../net/prefix.ts";
import type { Operation } from "../plan/operation.ts";
import type { AddressState, LinkState, NamespaceState, NextHopState, RouteState } from "../plan/state.ts";
import { formatAddress, formatRoute } from "../plan/text.ts";
import { refuse } from "./host-links.ts";

/** Addresses and routes of a link, except for those that the kernel adds to every link. */
interface IpConfig {
  readonly addresses: readonly AddressState[];
  readonly routes: readonly RouteState[];
}

/** Returns whether the kernel adds the route to every link: ff00::/8 or link-local. */
function isOfEveryLink({ destination, protocol }: RouteState): boolean {
  const { ip } = destination;
  return protocol === RTPROT_KERNEL && ip.family === 6 && (isMulticast(ip) || isLinkLocal(ip));
}

function leadsOver({ link, nextHops }: RouteState, name: string): boolean {
  return link === name || nextHops?.some((hop) => hop.link === name) === true;
}

export function ipConfigOf({ addresses, routes }: NamespaceState, { name }: LinkState): IpConfig {
  return {
    addresses: addresses.filter(({ link, prefix }) => link === name && !isLinkLocal(prefix.ip)),
    routes: routes.filter((route) => leadsOver(route, name) && !isOfEveryLink(route)),
  };
}

/** Throws CniError 106 for a member with addresses or routes: a member of a bond has none of its own. */
export function refuseIpConfig({ addresses, routes }: IpConfig, member: string, bond: string): void {
  const route = routes.find(({ destination }) => destination.length === 0) ?? routes[0];
  const carried = [
    ...addresses.slice(0, 1).map((address) => `address ${formatAddress(address)}`),
    ...(route === undefined ? [] : [`route ${formatRoute(route)}`]),
  ];
  if (carried.length === 0) return;
  refuse(
    `Interface "${member}" has ${carried.join(" and ")}, which joining the bond "${bond}" would cut off; ` +
      `move them first, or set "takeOver": true to have Berth move them to the bond`,
  );
}

/**
 * Throws CniError 106 for addresses and routes with a lifetime: the client that renews them (DHCP, router
 * advertisements) would continue on the member.
 */
export function requireStatic({ addresses, routes }: IpConfig, member: string): void {
  const address = addresses.find(({ flags }) => (flags & IFA_F_PERMANENT) === 0);
  const route = routes.find(({ protocol }) => protocol === RTPROT_RA || protocol === RTPROT_REDIRECT);
  const found = address ? `address ${formatAddress(address)}` : route && `route ${formatRoute(route)}`;
  if (found === undefined) return;
  refuse(
    `Interface "${member}" has ${found}, which has a limited lifetime and is renewed on "${member}" (DHCP, router advertisements), ` +
      `so "takeOver" cannot move it; configure the bond to obtain it instead`,
  );
}

/** Returns whether the kernel adds and deletes the route together with an address. */
function isMadeByKernel({ protocol, link, destination }: RouteState, addresses: readonly AddressState[]): boolean {
  if (protocol !== RTPROT_KERNEL) return false;
  return addresses.some(
    ({ link: name, prefix, peer, flags }) =>
      name === link &&
      (flags & IFA_F_NOPREFIXROUTE) === 0 &&
      formatPrefix(maskPrefix({ ...prefix, ip: peer ?? prefix.ip })) === formatPrefix(destination),
  );
}

/** Returns the last 64 bits of the link-local address that the kernel derives from a MAC (RFC 4291, appendix A). */
function interfaceIdOf(mac: Mac): bigint {
  const [first = 0, ...rest] = mac.split(":").map((octet) => Number.parseInt(octet, 16));
  const octets = [first ^ 2, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)];
  return octets.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
}

/** Returns link-local addresses that were added explicitly: they are lost when the link is set down. */
function ownLinkLocals({ addresses }: NamespaceState, { name, mac }: LinkState): AddressState[] {
  const isOfMac = ({ ip }: AddressState["prefix"]): boolean =>
    mac !== undefined && BigInt.asUintN(64, ip.value) === interfaceIdOf(mac);
  return addresses.filter(({ link, prefix }) => link === name && isLinkLocal(prefix.ip) && !isOfMac(prefix));
}

/** Returns the first of each set of objects that would be equal on the bond. */
function once<T>(things: readonly T[], text: (thing: T) => string): T[] {
  return [...new Map(things.toReversed().map((thing) => [text(thing), thing])).values()].reverse();
}

/** Returns the address without duplicate address detection: no other machine has it, and it must work at once. */
function withoutDetection(address: AddressState): AddressState {
  return address.prefix.ip.family === 4 ? address : { ...address, flags: address.flags | IFA_F_NODAD };
}

function onBond(address: AddressState, bond: string): AddressState {
  const rest = address.rest?.filter(({ type }) => type !== IFA_LABEL);
  return { ...withoutDetection(address), link: bond, rest };
}

function routeOnBond(route: RouteState, members: ReadonlySet<string | undefined>, bond: string): RouteState {
  const moved = <T extends string | undefined>(link: T): T | string => (members.has(link) ? bond : link);
  const nextHops = route.nextHops?.map((hop): NextHopState => ({ ...hop, link: moved(hop.link) }));
  return { ...route, link: moved(route.link), nextHops };
}

const needsGateway = ({ gateway, nextHops }: RouteState): boolean => gateway !== undefined || nextHops !== undefined;

/**
 * Plans the move of addresses, routes and permanent neighbours of all joining members to the bond. Undoing the
 * operations restores them. They `leave` before the members join, and `arrive` once the bond is up.
 */
export function planMove(host: NamespaceState, joining: readonly LinkState[], bond: string) {
  const place = "host";
  const members = new Set(joining.map(({ name }) => name));
  const loads = joining.map((link) => ({ link, ...ipConfigOf(host, link) }));
  const addresses = loads.flatMap(({ link, addresses: own }) => [...own, ...ownLinkLocals(host, link)]);
  const neighbours = host.neighbours.filter(({ link }) => members.has(link));
  const own = new Set(loads.flatMap((load) => load.routes));
  // The kernel also deletes routes over other links that have one of these addresses as their source.
  const isSource = ({ preferredSource: from }: RouteState): boolean =>
    addresses.some(({ prefix: { ip } }) => ip.family === from?.family && ip.value === from.value);
  const routes = host.routes.filter(
    (route) => (own.has(route) || isSource(route)) && !isMadeByKernel(route, addresses),
  );
  const near = routes.filter((route) => !needsGateway(route));
  const far = routes.filter(needsGateway);
  const inOrder = [...near, ...far];
  return {
    leave: [
      ...neighbours.map((neighbour): Operation => ({ kind: "delete-neighbour", place, neighbour })),
      ...inOrder.toReversed().map((route): Operation => ({ kind: "delete-route", place, route })),
      ...addresses
        .toReversed()
        .map((address): Operation => ({ kind: "delete-address", place, address: withoutDetection(address) })),
    ],
    arrive: [
      ...once(addresses, ({ prefix }) => formatPrefix(prefix)).map(
        (address): Operation => ({ kind: "add-address", place, address: onBond(address, bond) }),
      ),
      ...inOrder.map((route): Operation => ({ kind: "add-route", place, route: routeOnBond(route, members, bond) })),
      ...once(neighbours, ({ ip }) => formatIp(ip)).map(
        (neighbour): Operation => ({ kind: "add-neighbour", place, neighbour: { ...neighbour, link: bond } }),
      ),
    ],
  };
}
