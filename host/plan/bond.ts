/** Settings of a bond as plain values, with members by name. */
import { formatIp, type Ip } from "../net/ip.ts";
import type { Mac } from "../net/mac.ts";

/** The kernel's names of the numeric options (linux/if_link.h, IFLA_BOND_*). */
export const BOND_NUMBER_NAMES = [
  "mode",
  "miimon",
  "updelay",
  "downdelay",
  "use_carrier",
  "arp_interval",
  "arp_validate",
  "arp_all_targets",
  "primary_reselect",
  "fail_over_mac",
  "xmit_hash_policy",
  "resend_igmp",
  "num_peer_notif",
  "all_slaves_active",
  "min_links",
  "lp_interval",
  "packets_per_slave",
  "lacp_rate",
  "ad_select",
  "ad_actor_sys_prio",
  "ad_user_port_key",
  "tlb_dynamic_lb",
  "peer_notif_delay",
  "lacp_active",
  "missed_max",
  "coupled_control",
  "broadcast_neighbor",
] as const;

export type BondNumberName = (typeof BOND_NUMBER_NAMES)[number];

/** The options of a request, or those that the kernel reported; absent ones are left alone. */
export interface BondSettings {
  readonly numbers: { readonly [Name in BondNumberName]?: number };
  /** "" for none. */
  readonly primary?: string | undefined;
  /** "" for none. A failover changes it. */
  readonly activeSlave?: string | undefined;
  readonly arpIpTargets?: readonly Ip[] | undefined;
  readonly nsIp6Targets?: readonly Ip[] | undefined;
  readonly actorSystem?: Mac | undefined;
}

/** Returns the settings in the words of `ip link … type bond`, in the order of {@link BOND_NUMBER_NAMES}. */
export function bondWords(settings: BondSettings): [name: string, value: string][] {
  const { numbers, primary, activeSlave, arpIpTargets, nsIp6Targets, actorSystem } = settings;
  const list = (ips: readonly Ip[] | undefined): string | undefined => ips?.map(formatIp).join(",");
  const rest: [string, string | undefined][] = [
    ["primary", primary],
    ["active_slave", activeSlave],
    ["arp_ip_target", list(arpIpTargets)],
    ["ns_ip6_target", list(nsIp6Targets)],
    ["ad_actor_system", actorSystem],
  ];
  const known: [string, string | undefined][] = [
    ...BOND_NUMBER_NAMES.map((name): [string, string | undefined] => [name, numbers[name]?.toString()]),
    ...rest,
  ];
  return known.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]));
}

/** Formats the settings as `mode 1 miimon 100`; an empty value as "". */
export function formatBondSettings(settings: BondSettings): string {
  return bondWords(settings)
    .map(([name, value]) => `${name} ${value === "" ? '""' : value}`)
    .join(" ");
}
