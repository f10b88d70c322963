/**
 * Options of a bond: the attributes in its IFLA_INFO_DATA ↔ numbers, addresses and MACs by the kernel's option names.
 * The ifacer decides about valid values, and the order of setting them. Sources: linux/if_link.h (IFLA_BOND_*),
 * Documentation/networking/bonding.rst for the names.
 */
import type { Ip } from "../../../net/ip.ts";
import type { Mac } from "../../../net/mac.ts";
import { decodeMac, encodeMac } from "../../mac-bytes.ts";
import {
  type Attribute,
  attribute,
  decodeAttributes,
  decodeUint8,
  decodeUint16,
  decodeUint32,
  encodeUint16,
  encodeUint32,
  findValue,
  nest,
} from "../attribute.ts";
import { malformed } from "../error.ts";
import { decodeIp, encodeIp } from "../ip-bytes.ts";

/** Attribute type and width in bits of each numeric option. Members (primary, active_slave) are indexes. */
const NUMBERS = {
  mode: [1, 8],
  active_slave: [2, 32],
  miimon: [3, 32],
  updelay: [4, 32],
  downdelay: [5, 32],
  use_carrier: [6, 8],
  arp_interval: [7, 32],
  arp_validate: [9, 32],
  arp_all_targets: [10, 32],
  primary: [11, 32],
  primary_reselect: [12, 8],
  fail_over_mac: [13, 8],
  xmit_hash_policy: [14, 8],
  resend_igmp: [15, 32],
  num_peer_notif: [16, 8],
  all_slaves_active: [17, 8],
  min_links: [18, 32],
  lp_interval: [19, 32],
  packets_per_slave: [20, 32],
  lacp_rate: [21, 8],
  ad_select: [22, 8],
  ad_actor_sys_prio: [24, 16],
  ad_user_port_key: [25, 16],
  tlb_dynamic_lb: [27, 8],
  peer_notif_delay: [28, 32],
  lacp_active: [29, 8],
  missed_max: [30, 8],
  /** Since Linux 6.9; older kernels ignore unknown options. */
  coupled_control: [32, 8],
  /** Since Linux 6.17. */
  broadcast_neighbor: [33, 8],
} as const satisfies Record<string, readonly [type: number, bits: 8 | 16 | 32]>;
const IFLA_BOND_ARP_IP_TARGET = 8;
const IFLA_BOND_AD_ACTOR_SYSTEM = 26;
const IFLA_BOND_NS_IP6_TARGET = 31;

export type BondNumber = keyof typeof NUMBERS;
export const BOND_NUMBERS = Object.keys(NUMBERS) as readonly BondNumber[];

/** The options of a request, or of the kernel's report. */
export interface BondOptions {
  readonly numbers: { readonly [Name in BondNumber]?: number };
  readonly arpIpTargets?: readonly Ip[];
  readonly nsIp6Targets?: readonly Ip[];
  readonly actorSystem?: Mac;
}

const encoders = { 8: (value: number) => Uint8Array.of(value), 16: encodeUint16, 32: encodeUint32 };
const decoders = { 8: decodeUint8, 16: decodeUint16, 32: decodeUint32 };

function targets(type: number, ips: readonly Ip[]): Attribute {
  return nest(
    type,
    ips.map((ip, index) => attribute(index, encodeIp(ip))),
  );
}

export function encodeBond({ numbers, arpIpTargets, nsIp6Targets, actorSystem }: BondOptions): Attribute[] {
  const attributes = BOND_NUMBERS.flatMap((name) => {
    const [type, bits] = NUMBERS[name];
    const value = numbers[name];
    return value === undefined ? [] : [attribute(type, encoders[bits](value))];
  });
  if (arpIpTargets) attributes.push(targets(IFLA_BOND_ARP_IP_TARGET, arpIpTargets));
  if (nsIp6Targets) attributes.push(targets(IFLA_BOND_NS_IP6_TARGET, nsIp6Targets));
  if (actorSystem) attributes.push(attribute(IFLA_BOND_AD_ACTOR_SYSTEM, encodeMac(actorSystem)));
  return attributes;
}

function readTargets(attributes: readonly Attribute[], type: number): Ip[] | undefined {
  const list = findValue(attributes, type);
  return list && decodeAttributes(list).map(({ value }) => decodeIp(value));
}

export function decodeBond(attributes: readonly Attribute[]): BondOptions {
  const numbers: { [Name in BondNumber]?: number } = {};
  for (const name of BOND_NUMBERS) {
    const [type, bits] = NUMBERS[name];
    const value = findValue(attributes, type);
    if (value) numbers[name] = decoders[bits](value);
  }
  const arpIpTargets = readTargets(attributes, IFLA_BOND_ARP_IP_TARGET);
  const nsIp6Targets = readTargets(attributes, IFLA_BOND_NS_IP6_TARGET);
  const system = findValue(attributes, IFLA_BOND_AD_ACTOR_SYSTEM);
  const actorSystem = system && decodeMac(system);
  if (system && !actorSystem) throw malformed("bond", 0, `actor system of ${system.length} bytes`, "6");
  return {
    numbers,
    ...(arpIpTargets && { arpIpTargets }),
    ...(nsIp6Targets && { nsIp6Targets }),
    ...(actorSystem && { actorSystem }),
  };
}
