/**
 * What is in a network namespace, and what should be, as plain values. Links go by name: an index says nothing before a link exists.
 * Filled by kernel/observe-namespace.ts, compared by diff.ts, shown by text.ts.
 */
import type { Family, Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import type { Prefix } from "../net/prefix.ts";
import type { BondSettings } from "./bond.ts";
import type { NftTable } from "./nft-table.ts";

/** The two namespaces that an attachment touches. */
export type Place = "pod" | "host";

export const PLACES: readonly Place[] = ["pod", "host"];

/** The metric that the kernel gives a route of IPv6 when nobody says another. */
export const IPV6_METRIC = 1024;

/** What may be set on a link that exists. */
export interface LinkSettings {
  readonly up?: boolean | undefined;
  readonly mac?: Mac | undefined;
  /** A text for people, up to 255 bytes; "" for none (IFLA_IFALIAS). */
  readonly alias?: string | undefined;
  /** Links of one group are matched by one rule (IFLA_GROUP); 0 is everybody's. */
  readonly group?: number | undefined;
  /** Name of the bridge or bond to be a member of; "" for none. */
  readonly master?: string | undefined;
}

/** How a VLAN device tells its frames apart. */
export interface VlanTag {
  readonly id: number;
  /** ETH_P_8021Q or ETH_P_8021AD. */
  readonly protocol: number;
}

export interface LinkState {
  readonly name: string;
  readonly index: number;
  /** As the kernel names it: `veth`, `macvlan`, `bridge` …; "" for what is not made by software. */
  readonly kind: string;
  /** Undefined for what is no Ethernet device. */
  readonly mac: Mac | undefined;
  /** Switched on. */
  readonly up: boolean;
  /** Frames can pass. */
  readonly carrier: boolean;
  readonly loopback: boolean;
  readonly alias: string;
  readonly group: number;
  /** Index of the link under it, or of a veth's other end. */
  readonly parent: number | undefined;
  /** `parent` counts in another namespace. */
  readonly parentElsewhere: boolean;
  /** Name of the bridge, bond or vrf that it is a member of. */
  readonly master: string | undefined;
  /** In bytes; undefined when nobody asked. */
  readonly mtu?: number | undefined;
  /** Of links of kind `vlan` only. */
  readonly vlan?: VlanTag | undefined;
  /** Of links of kind `bond` only. */
  readonly bond?: BondSettings | undefined;
}

/** An attribute of the kernel's that this code does not read and passes on as it came. */
export interface OpaqueAttribute {
  readonly type: number;
  /** NLA_F_* */
  readonly flags: number;
  readonly value: Uint8Array;
}

export interface AddressState {
  readonly link: string;
  /** Host bits kept. */
  readonly prefix: Prefix;
  /** RT_SCOPE_*; 0 is global. */
  readonly scope: number;
  /** IFA_F_* */
  readonly flags: number;
  /** The other end of a point-to-point link. */
  readonly peer?: Ip | undefined;
  /** What else it was given: broadcast address, metric of its route, label, maker; absent when there is nothing. */
  readonly rest?: readonly OpaqueAttribute[] | undefined;
}

export interface NextHopState {
  readonly link: string;
  readonly gateway?: Ip | undefined;
  /** 1 or more. */
  readonly weight: number;
  /** RTNH_F_ONLINK or 0. */
  readonly flags: number;
}

/** In one table there is one route for a destination and metric. */
export interface RouteState {
  /** Without host bits; length 0 is the default route. */
  readonly destination: Prefix;
  readonly table: number;
  /** RTN_* */
  readonly type: number;
  /** RTPROT_*: who made it. */
  readonly protocol: number;
  /** RT_SCOPE_*; always 0 for IPv6. */
  readonly scope: number;
  /** RTNH_F_ONLINK or 0. */
  readonly flags: number;
  /** Undefined with next hops, and for routes that lead nowhere. */
  readonly link?: string | undefined;
  readonly gateway?: Ip | undefined;
  readonly preferredSource?: Ip | undefined;
  /** 0 for IPv4 and IPV6_METRIC for IPv6 when nobody says another. */
  readonly metric: number;
  /** Only packets from there (IPv6). */
  readonly source?: Prefix | undefined;
  readonly nextHops?: readonly NextHopState[] | undefined;
  /** 0 for any. */
  readonly tos: number;
  readonly rest: readonly OpaqueAttribute[];
}

export interface RuleState {
  readonly family: Family;
  readonly preference: number;
  /** Undefined for all. */
  readonly from?: Prefix | undefined;
  readonly to?: Prefix | undefined;
  /** Packets whose mark, masked, is this one. */
  readonly mark?: { readonly value: number; readonly mask: number } | undefined;
  readonly inputName?: string | undefined;
  readonly outputName?: string | undefined;
  /** 0 for actions that name none. */
  readonly table: number;
  /** FR_ACT_* */
  readonly action: number;
  /** FIB_RULE_INVERT or 0. */
  readonly flags: number;
  readonly tos: number;
  /** RTPROT_*: who made it. */
  readonly protocol: number;
  readonly rest: readonly OpaqueAttribute[];
}

/** A neighbour that is fixed (NUD_PERMANENT). */
export interface NeighbourState {
  readonly link: string;
  readonly ip: Ip;
  readonly mac: Mac;
}

/** A neighbour that the kernel learned, or is still asking for: it comes and goes. */
export interface DynamicNeighbourState {
  readonly link: string;
  readonly ip: Ip;
  /** Undefined while it is not known. */
  readonly mac: Mac | undefined;
}

/** Below `net`, parts parted by slashes: `ipv4/conf/eth0/rp_filter`. */
export type SysctlKey = string;

export interface NamespaceState {
  readonly links: readonly LinkState[];
  readonly addresses: readonly AddressState[];
  /** Of the tables that were asked for, without local ones. */
  readonly routes: readonly RouteState[];
  readonly rules: readonly RuleState[];
  /** Of those that were asked for. */
  readonly neighbours: readonly NeighbourState[];
  /** Of those that were asked for. */
  readonly dynamicNeighbours: readonly DynamicNeighbourState[];
  /** A setting of a link that is absent is absent, too. */
  readonly sysctls: ReadonlyMap<SysctlKey, string>;
  /** Berth's own, if it is there. */
  readonly tables: readonly NftTable[];
}

/** Both namespaces at one moment. */
export type Observed = Readonly<Record<Place, NamespaceState>>;

export const EMPTY_NAMESPACE: NamespaceState = {
  links: [],
  addresses: [],
  routes: [],
  rules: [],
  neighbours: [],
  dynamicNeighbours: [],
  sysctls: new Map(),
  tables: [],
};
