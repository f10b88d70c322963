/**
 * Links as plain values: what a message says of one, and what a message must say to make or change one.
 */
import type { Mac } from "../../../net/mac.ts";
import { decodeMac, encodeMac } from "../../mac-bytes.ts";
import {
  type Attribute,
  attribute,
  decodeString,
  decodeUint32,
  encodeString,
  encodeUint32,
  optional,
  present,
  readValue,
} from "../attribute.ts";
import { malformed } from "../error.ts";
import {
  IFF_LOWER_UP,
  IFF_UP,
  IFLA_ADDRESS,
  IFLA_AF_SPEC,
  IFLA_GROUP,
  IFLA_IFALIAS,
  IFLA_IFNAME,
  IFLA_LINK,
  IFLA_LINK_NETNSID,
  IFLA_LINKINFO,
  IFLA_MASTER,
  IFLA_MTU,
  IFLA_NET_NS_FD,
  VETH_INFO_PEER,
} from "./constants.ts";
import { decodeKind, encodeKind, type LinkKind } from "./kind.ts";
import { encodeLink, type LinkMessage } from "./message.ts";

export interface Link {
  readonly index: number;
  readonly name: string;
  /** ARPHRD_* */
  readonly deviceType: number;
  /** IFF_* */
  readonly flags: number;
  /** Switched on (IFF_UP). */
  readonly up: boolean;
  /** Whether frames can pass (IFF_LOWER_UP). */
  readonly carrier: boolean;
  /** Undefined for what is no Ethernet device. */
  readonly mac: Mac | undefined;
  readonly mtu: number;
  /** Undefined for what is not made by software. */
  readonly kind: LinkKind | undefined;
  /** Index of the link under it, or of a veth's peer; in the namespace `parentNetnsId` when that is told. */
  readonly parent: number | undefined;
  /** The kernel's number, in this namespace, of the namespace that `parent` is in; undefined when it is in this one. */
  readonly parentNetnsId: number | undefined;
  /** Index of the bridge, bond or vrf that it is a member of. */
  readonly master: number | undefined;
  /** A text for people; "" for none. */
  readonly alias: string;
  readonly group: number;
}

/** The attributes that {@link linkOf} reads. */
export const LINK_ATTRIBUTES: ReadonlySet<number> = new Set([
  IFLA_IFNAME,
  IFLA_ADDRESS,
  IFLA_MTU,
  IFLA_LINKINFO,
  IFLA_LINK,
  IFLA_LINK_NETNSID,
  IFLA_MASTER,
  IFLA_IFALIAS,
  IFLA_GROUP,
]);

/** Those, and what {@link readLinkSetting} of setting.ts reads. */
export const LINK_AND_SETTINGS: ReadonlySet<number> = new Set([...LINK_ATTRIBUTES, IFLA_AF_SPEC]);

/** Throws when a value is not of its length, or a link has no name. */
export function linkOf({ index, deviceType, flags, attributes }: LinkMessage): Link {
  const name = readValue(attributes, IFLA_IFNAME, decodeString);
  if (name === undefined) throw malformed("link message", 16, "no name", "IFLA_IFNAME");
  return {
    index,
    name,
    deviceType,
    flags,
    up: (flags & IFF_UP) !== 0,
    carrier: (flags & IFF_LOWER_UP) !== 0,
    mac: readValue(attributes, IFLA_ADDRESS, decodeMac),
    mtu: readValue(attributes, IFLA_MTU, decodeUint32) ?? 0,
    kind: decodeKind(attributes),
    parent: readValue(attributes, IFLA_LINK, decodeUint32),
    parentNetnsId: readValue(attributes, IFLA_LINK_NETNSID, decodeUint32),
    master: readValue(attributes, IFLA_MASTER, decodeUint32),
    alias: readValue(attributes, IFLA_IFALIAS, decodeString) ?? "",
    group: readValue(attributes, IFLA_GROUP, decodeUint32) ?? 0,
  };
}

/** What may be set on a link, new or not. */
export interface LinkChange {
  readonly name?: string | undefined;
  readonly mac?: Mac | undefined;
  readonly mtu?: number | undefined;
  readonly up?: boolean | undefined;
  /** Index of the bridge or bond to become a member of; 0 to leave it. */
  readonly master?: number | undefined;
  /** Up to 255 bytes; "" for none. */
  readonly alias?: string | undefined;
  readonly group?: number | undefined;
  /** Descriptor of the namespace to move to, or to be made in. */
  readonly netnsFd?: number | undefined;
}

/** A link to be made. */
export interface LinkSpec extends LinkChange {
  readonly name: string;
  readonly kind: LinkKind;
  /** The kernel finds one when none is given. */
  readonly index?: number | undefined;
  /** Index of the link under it, for macvlan and vlan. */
  readonly parent?: number | undefined;
  /** The other end, for veth; without it the kernel names one. It cannot be made up: the kernel would open it before its other end. */
  readonly peer?: Omit<LinkChange, "up"> & { readonly name: string };
}

function flagsOf(up: boolean | undefined): { flags: number; change: number } {
  return { flags: up ? IFF_UP : 0, change: up === undefined ? 0 : IFF_UP };
}

/** Without a final NUL, which would count as a byte of it: an empty value takes the alias away. */
const encodeAlias = (alias: string) => new TextEncoder().encode(alias);

function encodeChangeAttributes({ mac, mtu, master, netnsFd, name, alias, group }: LinkChange): Attribute[] {
  return present([
    optional(IFLA_ADDRESS, mac, encodeMac),
    optional(IFLA_MTU, mtu, encodeUint32),
    optional(IFLA_MASTER, master, encodeUint32),
    optional(IFLA_NET_NS_FD, netnsFd, encodeUint32),
    optional(IFLA_IFNAME, name, encodeString),
    optional(IFLA_IFALIAS, alias, encodeAlias),
    optional(IFLA_GROUP, group, encodeUint32),
  ]);
}

export function encodeLinkChange(index: number, change: LinkChange): Uint8Array {
  return encodeLink({ index, ...flagsOf(change.up), attributes: encodeChangeAttributes(change) });
}

export function encodeLinkSpec(demand: LinkSpec): Uint8Array {
  const { kind, parent, peer } = demand;
  const peers = peer ? [attribute(VETH_INFO_PEER, encodeLinkChange(0, peer))] : [];
  const attributes = present([
    optional(IFLA_LINK, parent, encodeUint32),
    ...encodeChangeAttributes(demand),
    encodeKind(kind, peers),
  ]);
  return encodeLink({ index: demand.index ?? 0, ...flagsOf(demand.up), attributes });
}

/** Options of a bond that exists: only `kind`'s data, nothing else of the link. */
export function encodeKindChange(index: number, kind: LinkKind): Uint8Array {
  return encodeLink({ index, attributes: [encodeKind(kind)] });
}
