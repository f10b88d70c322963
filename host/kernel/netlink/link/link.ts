import type { Mac } from "../../../net/mac.ts";
import type { LinkState } from "../../../plan/state.ts";
import { decodeMac, encodeMac } from "../../mac-bytes.ts";
import {
  type Attribute,
  attribute,
  decodeAttributes,
  decodeString,
  decodeUint32,
  encodeString,
  encodeText,
  encodeUint32,
  findValue,
  nest,
  optional,
  present,
  readValue,
} from "../attribute.ts";
import { NLA_F_NESTED } from "../constants.ts";
import { malformed } from "../error.ts";
import { encodeLink, type LinkMessage } from "../families.ts";
import {
  IFF_LOWER_UP,
  IFF_UP,
  IFLA_ADDRESS,
  IFLA_AF_SPEC,
  IFLA_ALT_IFNAME,
  IFLA_GROUP,
  IFLA_IFALIAS,
  IFLA_IFNAME,
  IFLA_LINK,
  IFLA_LINK_NETNSID,
  IFLA_LINKINFO,
  IFLA_MASTER,
  IFLA_MTU,
  IFLA_NET_NS_FD,
  IFLA_NUM_RX_QUEUES,
  IFLA_NUM_TX_QUEUES,
  IFLA_OPERSTATE,
  IFLA_PROP_LIST,
  VETH_INFO_PEER,
} from "./constants.ts";
import { decodeKind, encodeKind, type LinkKind } from "./kind.ts";
import { encodeAddressGeneration, encodeRpFilter } from "./setting.ts";

/** Refers to links by their indexes. */
export interface Link extends Pick<LinkState, "index" | "name" | "up" | "carrier" | "mac" | "alias" | "group"> {
  /** ARPHRD_* */
  readonly deviceType: number;
  /** IFF_* */
  readonly flags: number;
  readonly mtu: number;
  /** Undefined for a physical device. */
  readonly kind: LinkKind | undefined;
  /** Index of the parent, or of the peer of a veth; in the namespace `parentNetnsId` if that is set. */
  readonly parent: number | undefined;
  /** ID, in this namespace, of the parent's namespace; undefined if it is this one. */
  readonly parentNetnsId: number | undefined;
  /** Index of the bridge, bond or VRF that it is a member of. */
  readonly master: number | undefined;
  readonly altNames: readonly string[];
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
  IFLA_PROP_LIST,
  IFLA_GROUP,
]);

/** LINK_ATTRIBUTES, those that {@link readLinkSetting} of setting.ts reads, and the state of operation. */
export const LINK_AND_SETTINGS: ReadonlySet<number> = new Set([...LINK_ATTRIBUTES, IFLA_AF_SPEC, IFLA_OPERSTATE]);

const NO_NAMES: readonly string[] = [];

function decodeAltNames(attributes: readonly Attribute[]): readonly string[] {
  const list = findValue(attributes, IFLA_PROP_LIST);
  if (list === undefined) return NO_NAMES;
  const names = decodeAttributes(list).filter(({ type }) => type === IFLA_ALT_IFNAME);
  return names.map(({ value }) => decodeString(value));
}

/** Throws NetlinkError for a value of the wrong length, and for a link without a name. */
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
    altNames: decodeAltNames(attributes),
    group: readValue(attributes, IFLA_GROUP, decodeUint32) ?? 0,
  };
}

export interface LinkChange {
  readonly name?: string | undefined;
  readonly mac?: Mac | undefined;
  readonly mtu?: number | undefined;
  readonly up?: boolean | undefined;
  /** Index of the bridge or bond to join; 0 to leave it. */
  readonly master?: number | undefined;
  /** Up to 255 bytes; "" for none. */
  readonly alias?: string | undefined;
  readonly group?: number | undefined;
  /** Descriptor of the namespace to move it to, or to create it in. */
  readonly netnsFd?: number | undefined;
  /** Reverse path filter of IPv4 (`rp_filter`): 0 to 2. */
  readonly rpFilter?: number | undefined;
  /** The link's mode of IPv6 link-local addresses (`addr_gen_mode`): 0 to 3. */
  readonly addressGeneration?: number | undefined;
  /**
   * Queues of a new link, in each direction. Without it a veth is created with one per processor and loses all but the
   * first at once: the kernel waits for that, holding the lock on all links (drivers/net/veth.c, veth_init_queues).
   */
  readonly queues?: number | undefined;
}

export interface LinkSpec extends LinkChange {
  readonly name: string;
  readonly kind: LinkKind;
  /** By default the kernel chooses one. */
  readonly index?: number | undefined;
  /** Index of the parent, for macvlan and vlan. */
  readonly parent?: number | undefined;
  /**
   * The other end of a veth; without it the kernel chooses a name. It cannot be created up: the kernel would open it
   * before its other end.
   */
  readonly peer?: Omit<LinkChange, "up"> & { readonly name: string };
}

function flagsOf(up: boolean | undefined): { flags: number; change: number } {
  return { flags: up ? IFF_UP : 0, change: up === undefined ? 0 : IFF_UP };
}

function encodeChangeAttributes(change: LinkChange): Attribute[] {
  const { mac, mtu, master, netnsFd, name, alias, group, rpFilter, addressGeneration, queues } = change;
  const perFamily = present([
    rpFilter === undefined ? undefined : encodeRpFilter(rpFilter),
    addressGeneration === undefined ? undefined : encodeAddressGeneration(addressGeneration),
  ]);
  return present([
    optional(IFLA_ADDRESS, mac, encodeMac),
    optional(IFLA_MTU, mtu, encodeUint32),
    optional(IFLA_MASTER, master, encodeUint32),
    optional(IFLA_NET_NS_FD, netnsFd, encodeUint32),
    optional(IFLA_IFNAME, name, encodeString),
    // Without a final NUL, which would be part of it; an empty value removes the alias.
    optional(IFLA_IFALIAS, alias, encodeText),
    optional(IFLA_GROUP, group, encodeUint32),
    optional(IFLA_NUM_TX_QUEUES, queues, encodeUint32),
    optional(IFLA_NUM_RX_QUEUES, queues, encodeUint32),
    perFamily.length === 0 ? undefined : nest(IFLA_AF_SPEC, perFamily),
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

/** Encodes new options of an existing bond: only the data of `kind`, nothing else of the link. */
export function encodeKindChange(index: number, kind: LinkKind): Uint8Array {
  return encodeLink({ index, attributes: [encodeKind(kind)] });
}

/** Encodes one alternative name of an existing link, to be added or removed. */
export function encodeAltName(index: number, name: string): Uint8Array {
  const names = nest(IFLA_PROP_LIST, [attribute(IFLA_ALT_IFNAME, encodeString(name))], NLA_F_NESTED);
  return encodeLink({ index, attributes: [names] });
}
