/** States of plan/state.ts, which refer to links by name, ↔ values of netlink/, which use indexes. */
import type { AddressState, LinkState, NeighbourState, NextHopState, RouteState, RuleState } from "../plan/state.ts";
import { bondSettingsOf } from "./devices.ts";
import type { Address } from "./netlink/address/address.ts";
import { IFA_F_CHOSEN, IFA_LABEL } from "./netlink/address/constants.ts";
import { type Attribute, decodeString } from "./netlink/attribute.ts";
import { IFF_LOOPBACK } from "./netlink/link/constants.ts";
import { kindName } from "./netlink/link/kind.ts";
import type { Link } from "./netlink/link/link.ts";
import { NUD_PERMANENT } from "./netlink/neighbour/constants.ts";
import type { Neighbour } from "./netlink/neighbour/neighbour.ts";
import { IP6_RT_PRIO_USER, RTNH_F_ONLINK } from "./netlink/route/constants.ts";
import type { NextHop } from "./netlink/route/next-hop.ts";
import { leadsNowhere, type Route } from "./netlink/route/route.ts";
import type { Rule } from "./netlink/rule/rule.ts";

/** Returns undefined if there is no such link. */
export type NameOf = (index: number) => string | undefined;
export type IndexOf = (name: string) => number | undefined;

/** The kernel's default metrics; it reports none for IPv4. */
const DEFAULT_METRICS = { 4: 0, 6: IP6_RT_PRIO_USER } as const;

export function linkStateOf(link: Link, nameOf: NameOf): LinkState {
  const { name, index, kind, mac, up, carrier, flags, alias, group, parent, parentNetnsId, master, mtu } = link;
  const { altNames } = link;
  return {
    name,
    index,
    kind: kind === undefined ? "" : kindName(kind),
    mac,
    up,
    carrier,
    loopback: (flags & IFF_LOOPBACK) !== 0,
    alias,
    ...(altNames.length > 0 && { altNames }),
    group,
    parent,
    parentElsewhere: parentNetnsId !== undefined,
    master: master === undefined ? undefined : nameOf(master),
    mtu,
    ...(kind?.kind === "vlan" && { vlan: { id: kind.id, protocol: kind.protocol } }),
    ...(kind?.kind === "bond" && { bond: bondSettingsOf(kind.options, nameOf) }),
  };
}

/** `rest` are the attributes without a field. A label equal to the link's name is the default and left out. */
export function addressStateOf(address: Address, nameOf: NameOf, rest: readonly Attribute[]): AddressState | undefined {
  const { link, prefix, peer, scope, flags } = address;
  const name = nameOf(link);
  if (name === undefined) return undefined;
  const kept = rest.filter(({ type, value }) => type !== IFA_LABEL || decodeString(value) !== name);
  const more = kept.length > 0 && {
    rest: kept.map(({ type, flags: kind = 0, value }) => ({ type, flags: kind, value })),
  };
  return { link: name, prefix, scope, flags, ...(peer && { peer }), ...more };
}

export function addressFrom(state: AddressState, indexOf: IndexOf): Address | undefined {
  const index = indexOf(state.link);
  return index === undefined ? undefined : { ...state, link: index, flags: state.flags & IFA_F_CHOSEN };
}

function nextHopStateOf({ link, gateway, weight, flags }: NextHop, nameOf: NameOf): NextHopState | undefined {
  const name = nameOf(link);
  return name === undefined ? undefined : { link: name, gateway, weight, flags: flags & RTNH_F_ONLINK };
}

function nextHopFrom({ link, gateway, weight, flags }: NextHopState, indexOf: IndexOf): NextHop | undefined {
  const index = indexOf(link);
  return index === undefined ? undefined : { link: index, gateway, weight, flags };
}

function allOf<From, To>(values: readonly From[], translate: (value: From) => To | undefined): To[] | undefined {
  const translated = values.map(translate).filter((value) => value !== undefined);
  return translated.length === values.length ? translated : undefined;
}

export function routeStateOf(route: Route, nameOf: NameOf): RouteState | undefined {
  const { destination, table, type, protocol, scope, flags, gateway, preferredSource, source, tos = 0 } = route;
  const index = leadsNowhere(route) ? undefined : route.link;
  const link = index === undefined ? undefined : nameOf(index);
  const nextHops = route.nextHops && allOf(route.nextHops, (hop) => nextHopStateOf(hop, nameOf));
  if ((link === undefined) !== (index === undefined) || (nextHops === undefined) !== (route.nextHops === undefined)) {
    return undefined;
  }
  const metric = route.metric ?? DEFAULT_METRICS[destination.ip.family];
  const { rest = [] } = route;
  const ends = { link, gateway, preferredSource, metric, source, nextHops };
  return { destination, table, type, protocol, scope, flags: flags & RTNH_F_ONLINK, ...ends, tos, rest };
}

export function routeFrom(state: RouteState, indexOf: IndexOf): Route | undefined {
  const link = state.link === undefined ? undefined : indexOf(state.link);
  const nextHops = state.nextHops && allOf(state.nextHops, (hop) => nextHopFrom(hop, indexOf));
  if ((link === undefined) !== (state.link === undefined)) return undefined;
  if ((nextHops === undefined) !== (state.nextHops === undefined)) return undefined;
  const metric = state.destination.ip.family === 4 && state.metric === 0 ? undefined : state.metric;
  return { ...state, link, nextHops, metric };
}

export function ruleStateOf({ tos = 0, protocol = 0, rest = [], ...rule }: Rule): RuleState {
  return { ...rule, tos, protocol, rest };
}

export function neighbourFrom({ link, ip, mac }: NeighbourState, indexOf: IndexOf): Neighbour | undefined {
  const index = indexOf(link);
  return index === undefined ? undefined : { link: index, ip, mac, state: NUD_PERMANENT, flags: 0 };
}
