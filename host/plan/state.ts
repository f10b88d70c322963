/**
 * State of a network namespace, observed or desired, as plain values. Links are referred to by name: an index means
 * nothing before a link exists.
 */
import type { Family, Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";
import type { Prefix } from "../net/prefix.ts";
import type { BondSettings } from "./bond.ts";
import type { NftTable, OpaqueAttribute } from "./nft-table.ts";

/** The two namespaces that an attachment touches. */
export type Place = "pod" | "host";

export const PLACES: readonly Place[] = ["pod", "host"];

/** The link with addresses of Services (kube-proxy, `ipvs`). Tenants choose these: the node is not their machine. */
export const SERVICES_LINK = "kube-ipvs0";

/** The kernel's default metric of IPv6 routes. */
export const IPV6_METRIC = 1024;

/** The settings of an existing link. */
export interface LinkSettings {
  readonly up?: boolean | undefined;
  readonly mac?: Mac | undefined;
  /** Free text of up to 255 bytes (IFLA_IFALIAS); "" for none. */
  readonly alias?: string | undefined;
  /** Group of links (IFLA_GROUP), which one rule can match; 0 is the default. */
  readonly group?: number | undefined;
  /** Name of the bridge or bond to join; "" for none. */
  readonly master?: string | undefined;
  /** In bytes. */
  readonly mtu?: number | undefined;
}

interface VlanTag {
  readonly id: number;
  /** ETH_P_8021Q or ETH_P_8021AD. */
  readonly protocol: number;
}

export interface LinkState {
  readonly name: string;
  readonly index: number;
  /** The kernel's name: `veth`, `macvlan`, `bridge` …; "" for a physical device. */
  readonly kind: string;
  /** Undefined for a link that is not an Ethernet device. */
  readonly mac: Mac | undefined;
  /** IFF_UP */
  readonly up: boolean;
  /** Frames can pass. */
  readonly carrier: boolean;
  readonly loopback: boolean;
  readonly alias: string;
  /** Further names of the link; absent if there are none. */
  readonly altNames?: readonly string[] | undefined;
  readonly group: number;
  /** Index of the parent, or of a veth's peer. */
  readonly parent: number | undefined;
  /** `parent` is in another namespace. */
  readonly parentElsewhere: boolean;
  /** Name of the bridge, bond or VRF that it is a member of. */
  readonly master: string | undefined;
  /** In bytes; undefined if it was not read. */
  readonly mtu?: number | undefined;
  /** For links of kind `vlan` only. */
  readonly vlan?: VlanTag | undefined;
  /** For links of kind `bond` only. */
  readonly bond?: BondSettings | undefined;
}

export interface AddressState {
  readonly link: string;
  /** With host bits. */
  readonly prefix: Prefix;
  /** RT_SCOPE_*; 0 is global. */
  readonly scope: number;
  /** IFA_F_* */
  readonly flags: number;
  /** The other end of a point-to-point link. */
  readonly peer?: Ip | undefined;
  /** Other attributes: broadcast address, metric of its route, label, protocol; absent if there are none. */
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

/** A route. A table normally has one per destination and metric. */
export interface RouteState {
  /** Without host bits; length 0 is the default route. */
  readonly destination: Prefix;
  readonly table: number;
  /** RTN_* */
  readonly type: number;
  /** RTPROT_*: the software that created it. */
  readonly protocol: number;
  /** RT_SCOPE_*; always 0 for IPv6. */
  readonly scope: number;
  /** RTNH_F_ONLINK or 0. */
  readonly flags: number;
  /** Undefined for multipath routes and for those without a device (blackhole and the like). */
  readonly link?: string | undefined;
  readonly gateway?: Ip | undefined;
  readonly preferredSource?: Ip | undefined;
  /** The default is 0 for IPv4 and IPV6_METRIC for IPv6. */
  readonly metric: number;
  /** Matches only packets from this prefix (IPv6). */
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
  /** Matches packets whose masked mark equals this value. */
  readonly mark?: { readonly value: number; readonly mask: number } | undefined;
  readonly inputName?: string | undefined;
  readonly outputName?: string | undefined;
  /** 0 for actions without a table. */
  readonly table: number;
  /** FR_ACT_* */
  readonly action: number;
  /** Preference of the rule at which FR_ACT_GOTO goes on. */
  readonly goto?: number | undefined;
  /** FIB_RULE_INVERT or 0. */
  readonly flags: number;
  readonly tos: number;
  /** RTPROT_*: the software that created it. */
  readonly protocol: number;
  readonly rest: readonly OpaqueAttribute[];
}

/** A permanent neighbour (NUD_PERMANENT). */
export interface NeighbourState {
  readonly link: string;
  readonly ip: Ip;
  readonly mac: Mac;
}

/** A path below `net`, separated by slashes: `ipv4/conf/eth0/rp_filter`. */
export type SysctlKey = string;

export interface NamespaceState {
  readonly links: readonly LinkState[];
  readonly addresses: readonly AddressState[];
  /** Routes of the requested tables, without local ones. */
  readonly routes: readonly RouteState[];
  readonly rules: readonly RuleState[];
  readonly neighbours: readonly NeighbourState[];
  /** Settings of absent links are absent. */
  readonly sysctls: ReadonlyMap<SysctlKey, string>;
  /** The requested tables that exist. */
  readonly tables: readonly NftTable[];
}

/** Both namespaces, observed together. */
export type Observed = Readonly<Record<Place, NamespaceState>>;

export const EMPTY_NAMESPACE: NamespaceState = {
  links: [],
  addresses: [],
  routes: [],
  rules: [],
  neighbours: [],
  sysctls: new Map(),
  tables: [],
};
