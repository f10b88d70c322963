/**
 * The kernel's options of a bond: what their values look like, which modes allow them, when they are set.
 * Sources: drivers/net/bonding/bond_options.c (names, values, `unsuppmodes`), Documentation/networking/bonding.rst. The numbers of their
 * netlink attributes are in kernel/netlink/link/bond.ts, under the same names but for those with a `netlink` name.
 */
import type { BondNumberName } from "../plan/bond.ts";

/** What a value may be. */
export type BondValueType =
  /** A whole number from `min` to `max`; with `words` also one of those. */
  | { readonly type: "number"; readonly min: number; readonly max: number; readonly words?: readonly string[] }
  /** The name of a value, which stands at the place of its number. */
  | { readonly type: "word"; readonly words: readonly string[] }
  | { readonly type: "addresses"; readonly family: 4 | 6 }
  | { readonly type: "mac" }
  /** The name of a member. */
  | { readonly type: "member" };

export type BondTarget = BondNumberName | "primary" | "activeSlave" | "arpIpTargets" | "nsIp6Targets" | "actorSystem";

export interface BondOption {
  /** Where its value stands in a bond's settings. */
  readonly target: BondTarget;
  readonly value: BondValueType;
  /** The modes that allow it; undefined for all. */
  readonly modes?: readonly number[];
}

const INT_MAX = 2_147_483_647;
const MAX_PEER_NOTIF_DELAY_MS = 300_000;

const ACTIVE_BACKUP = 1;
const LACP = 4;
const TLB = 5;
const ALB = 6;
/** Modes that watch their members by ARP. */
const WITH_ARP = [0, 1, 2, 3];
const WITH_ACTIVE = [ACTIVE_BACKUP, TLB, ALB];

const number = (min: number, max: number): BondValueType => ({ type: "number", min, max });
const word = (...words: string[]): BondValueType => ({ type: "word", words });
const switched = word("off", "on");

/** Every option by the kernel's name; two names of one target are one option. */
export const BOND_OPTIONS: Readonly<Record<string, BondOption>> = {
  active_slave: { target: "activeSlave", value: { type: "member" }, modes: WITH_ACTIVE },
  ad_actor_sys_prio: { target: "ad_actor_sys_prio", value: number(1, 65_535), modes: [LACP] },
  ad_actor_system: { target: "actorSystem", value: { type: "mac" }, modes: [LACP] },
  ad_select: { target: "ad_select", value: word("stable", "bandwidth", "count") },
  ad_user_port_key: { target: "ad_user_port_key", value: number(0, 1_023), modes: [LACP] },
  all_slaves_active: { target: "all_slaves_active", value: switched },
  arp_all_targets: { target: "arp_all_targets", value: word("any", "all") },
  arp_interval: { target: "arp_interval", value: number(0, INT_MAX), modes: WITH_ARP },
  arp_ip_target: { target: "arpIpTargets", value: { type: "addresses", family: 4 } },
  arp_missed_max: { target: "missed_max", value: number(1, 255), modes: WITH_ARP },
  arp_validate: {
    target: "arp_validate",
    value: word("none", "active", "backup", "all", "filter", "filter_active", "filter_backup"),
    modes: WITH_ARP,
  },
  broadcast_neighbor: { target: "broadcast_neighbor", value: switched, modes: [LACP] },
  coupled_control: { target: "coupled_control", value: switched, modes: [LACP] },
  downdelay: { target: "downdelay", value: number(0, INT_MAX) },
  fail_over_mac: { target: "fail_over_mac", value: word("none", "active", "follow") },
  lacp_active: { target: "lacp_active", value: switched, modes: [LACP] },
  lacp_rate: { target: "lacp_rate", value: word("slow", "fast"), modes: [LACP] },
  lp_interval: { target: "lp_interval", value: number(1, INT_MAX) },
  miimon: { target: "miimon", value: number(0, INT_MAX) },
  min_links: { target: "min_links", value: number(0, INT_MAX) },
  ns_ip6_target: { target: "nsIp6Targets", value: { type: "addresses", family: 6 } },
  num_grat_arp: { target: "num_peer_notif", value: number(0, 255) },
  num_unsol_na: { target: "num_peer_notif", value: number(0, 255) },
  packets_per_slave: { target: "packets_per_slave", value: number(0, 65_535), modes: [0] },
  peer_notif_delay: { target: "peer_notif_delay", value: number(0, MAX_PEER_NOTIF_DELAY_MS) },
  primary: { target: "primary", value: { type: "member" }, modes: WITH_ACTIVE },
  primary_reselect: { target: "primary_reselect", value: word("always", "better", "failure") },
  resend_igmp: { target: "resend_igmp", value: number(0, 255) },
  tlb_dynamic_lb: { target: "tlb_dynamic_lb", value: switched, modes: [TLB, ALB] },
  updelay: { target: "updelay", value: number(0, INT_MAX) },
  use_carrier: { target: "use_carrier", value: switched },
  xmit_hash_policy: {
    target: "xmit_hash_policy",
    value: word("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"),
  },
};

/** Parameters of the driver that are no options of one bond, and what to do instead. */
export const OTHER_PARAMETERS: ReadonlyMap<string, string> = new Map([
  ["mode", 'the mode in "bond.mode"'],
  ["slaves", 'the members in "interfaces"'],
  ["max_bonds", "no number of bonds: each definition makes its own"],
  ["tx_queues", "no option of the module as a whole: it holds for all bonds when the module is loaded"],
  ["queue_id", "no option of a single member"],
  ["prio", "no option of a single member"],
]);

/** Options that wait for a monitor of the link: the kernel refuses them while `miimon` is 0. */
export const NEED_MIIMON: readonly BondNumberName[] = ["updelay", "downdelay", "peer_notif_delay"];

/** Modes that switch `miimon` on by themselves, with 100 ms. */
export const MIIMON_BY_ITSELF: readonly number[] = [LACP, TLB, ALB];

/** Which modes take the target. */
export function allowsTarget(mode: number, target: BondTarget): boolean {
  const options = Object.values(BOND_OPTIONS).filter((option) => option.target === target);
  return options.every(({ modes }) => modes === undefined || modes.includes(mode));
}
