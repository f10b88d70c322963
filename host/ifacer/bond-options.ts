/**
 * The kernel's bond options: their values, the modes that allow them, and `bond.options` as settings: `miimon=100;
 * xmit_hash_policy=layer3+4`.
 * Sources: drivers/net/bonding/bond_options.c (names, values, `unsuppmodes`), Documentation/networking/bonding.rst.
 * Their netlink attributes are in kernel/netlink/link/bond.ts, under the same names or under `target`.
 */

import { formatBondMode } from "../config/ifacer-conf.ts";
import { findClosest } from "../lib/closest.ts";
import { describeValue } from "../lib/describe.ts";
import type { Mismatch } from "../lib/schema.ts";
import { type Ip, isMulticast, parseIp } from "../net/ip.ts";
import { parseMac } from "../net/mac.ts";
import { BOND_NUMBER_NAMES, type BondNumberName, type BondSettings } from "../plan/bond.ts";

/** The type of an option's value. */
type BondValueType =
  /** An integer from `min` to `max`, or one of `words`. */
  | { readonly type: "number"; readonly min: number; readonly max: number; readonly words?: readonly string[] }
  /** One of `words`; its index is the number for the kernel. */
  | { readonly type: "word"; readonly words: readonly string[] }
  | { readonly type: "addresses"; readonly family: 4 | 6 }
  | { readonly type: "mac" }
  | { readonly type: "member" };

type BondTarget = BondNumberName | "primary" | "activeSlave" | "arpIpTargets" | "nsIp6Targets" | "actorSystem";

interface BondOption {
  /** The place of the value in a bond's settings. */
  readonly target: BondTarget;
  readonly value: BondValueType;
  /** Modes that allow the option; undefined for all. */
  readonly modes?: readonly number[];
}

const INT_MAX = 2_147_483_647;
const MAX_PEER_NOTIF_DELAY_MS = 300_000;

const ACTIVE_BACKUP = 1;
const LACP = 4;
const TLB = 5;
const ALB = 6;
/** Modes with ARP monitoring. */
const WITH_ARP = [0, 1, 2, 3];
const WITH_ACTIVE = [ACTIVE_BACKUP, TLB, ALB];

const number = (min: number, max: number): BondValueType => ({ type: "number", min, max });
const word = (...words: string[]): BondValueType => ({ type: "word", words });
const switched = word("off", "on");

/** All options by the kernel's name; two names with one target are the same option. */
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

/** Parameters of the driver that are not options of a single bond, and their replacements. */
const OTHER_PARAMETERS: ReadonlyMap<string, string> = new Map([
  ["mode", 'the mode in "bond.mode"'],
  ["slaves", 'the members in "interfaces"'],
  ["max_bonds", "no max_bonds: each definition creates its own bond"],
  ["tx_queues", "no tx_queues: it is a module parameter that applies to all bonds"],
  ["queue_id", "no queue_id: it is an option of a single member"],
  ["prio", "no prio: it is an option of a single member"],
]);

/** Options that need a link monitor: the kernel refuses them while `miimon` is 0. */
export const NEED_MIIMON: readonly BondNumberName[] = ["updelay", "downdelay", "peer_notif_delay"];

/** Modes that enable `miimon` by default, with 100 ms. */
const MIIMON_BY_ITSELF: readonly number[] = [LACP, TLB, ALB];

/** Most addresses in `arp_ip_target` and in `ns_ip6_target`: the kernel's limit (BOND_MAX_ARP_TARGETS). @limit */
export const MAX_TARGETS = 16;

type Value = number | string | readonly Ip[];

interface BondContext {
  /** Undefined if the configuration names none; the kernel's default is 0. */
  readonly mode: number | undefined;
  readonly members: readonly string[];
}

class Refusal extends Error {
  readonly wanted: string;

  constructor(wanted: string) {
    super(wanted);
    this.wanted = wanted;
  }
}

function refuse(wanted: string): never {
  throw new Refusal(wanted);
}

function parseNumber(key: string, text: string, min: number, max: number): number {
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : -1;
  return value >= min && value <= max ? value : refuse(`${key}= followed by an integer from ${min} to ${max}`);
}

function parseWord(key: string, text: string, words: readonly string[]): number {
  const value = /^[0-9]{1,2}$/.test(text) ? Number(text) : words.indexOf(text);
  if (value >= 0 && value < words.length) return value;
  const closest = findClosest(text, words);
  const choice = words.map((name, index) => `${name} (${index})`).join(", ");
  return refuse(closest === undefined ? `${key}= followed by one of ${choice}` : `"${key}=${closest}"`);
}

/** Returns whether the kernel accepts the address as a target (`bond_is_ip_target_ok`, `bond_is_ip6_target_ok`). */
function isTarget(ip: Ip): boolean {
  const { family, value } = ip;
  return value !== 0n && !(family === 6 && isMulticast(ip)) && !(family === 4 ? value === 0xffff_ffffn : value === 1n);
}

function parseAddresses(key: string, text: string, family: 4 | 6): Ip[] {
  const wanted = `${key}= followed by at most ${MAX_TARGETS} different IPv${family} addresses, separated by commas`;
  const ips = text.split(",").map((part) => parseIp(part.trim()));
  const found = ips.filter((ip) => ip !== undefined && ip.family === family && isTarget(ip)) as Ip[];
  const unique = new Set(found.map(({ value }) => value));
  return found.length === ips.length && unique.size === ips.length && ips.length <= MAX_TARGETS
    ? found
    : refuse(wanted);
}

function parseValue(key: string, text: string, type: BondValueType, members: readonly string[]): Value {
  switch (type.type) {
    case "number":
      return parseNumber(key, text, type.min, type.max);
    case "word":
      return parseWord(key, text, type.words);
    case "addresses":
      return parseAddresses(key, text, type.family);
    case "mac": {
      const mac = parseMac(text);
      const isMulticast = mac !== undefined && (Number.parseInt(mac.slice(0, 2), 16) & 1) !== 0;
      return mac === undefined || isMulticast ? refuse(`${key}= followed by a unicast MAC address`) : mac;
    }
    case "member":
      return members.includes(text) ? text : refuse(`${key}= followed by one of the members ${members.join(", ")}`);
  }
}

/** Returns the option, or for an unknown key the text of a valid one. */
function findOption(key: string): BondOption | { readonly wanted: string } {
  if (Object.hasOwn(BOND_OPTIONS, key)) return BOND_OPTIONS[key] ?? { wanted: "" };
  const other = OTHER_PARAMETERS.get(key);
  if (other !== undefined) return { wanted: other };
  const names = Object.keys(BOND_OPTIONS);
  const closest = findClosest(key, names);
  return { wanted: closest === undefined ? `a bond option: ${names.join(", ")}` : `the option "${closest}"` };
}

/** Returns the key and the value of an entry, both trimmed. */
function splitEntry(entry: string): { key: string; text: string } {
  const equals = entry.indexOf("=");
  const key = (equals < 0 ? entry : entry.slice(0, equals)).trim();
  const text = equals < 0 ? "" : entry.slice(equals + 1).trim();
  if (key === "") refuse("<option>=<value>");
  if (text === "") refuse(`"${key}=<value>"`);
  return { key, text };
}

function requireMode(key: string, { modes }: BondOption, { mode }: BondContext): void {
  if (modes === undefined || modes.includes(mode ?? 0)) return;
  const note = mode === undefined ? ", the default of bond.mode" : "";
  refuse(
    `no ${key} in mode ${formatBondMode(mode ?? 0)}${note}; it requires mode ${modes.map(formatBondMode).join(", ")}`,
  );
}

function settingsFrom(values: ReadonlyMap<BondTarget, Value>): BondSettings {
  const isNumber = (target: BondTarget): boolean => BOND_NUMBER_NAMES.some((name) => name === target);
  const numbers = Object.fromEntries([...values].filter(([target]) => isNumber(target)));
  const rest = Object.fromEntries([...values].filter(([target]) => !isNumber(target)));
  return { numbers, ...rest };
}

/** Returns the combinations of options that the kernel refuses. */
function contradictions(settings: BondSettings, mode: number): string[] {
  const { numbers } = settings;
  const { miimon = MIIMON_BY_ITSELF.includes(mode) ? 100 : 0, arp_interval = 0, arp_validate = 0 } = numbers;
  const late = NEED_MIIMON.filter((name) => numbers[name] !== undefined && miimon === 0);
  return [
    ...late.map((name) => `a miimon above 0, which ${name} requires`),
    ...(miimon > 0 && arp_interval > 0
      ? ["only one of miimon and arp_interval: the kernel monitors links in one way"]
      : []),
    ...(miimon > 0 && arp_validate > 0
      ? ["only one of miimon and arp_validate: it checks ARP, which miimon does not use"]
      : []),
  ];
}

/** Parses entries separated by `;`, the last of which may be empty. No mismatches mean that all are valid. */
export function parseBondOptions(options: string, context: BondContext) {
  const entries = options.split(";");
  if (entries.at(-1)?.trim() === "") entries.pop();
  const values = new Map<BondTarget, Value>();
  const mismatches: Mismatch[] = [];
  const report = (got: string, wanted: string): void => void mismatches.push({ path: "bond.options", got, wanted });
  for (const entry of entries) {
    try {
      const { key, text } = splitEntry(entry);
      const option = findOption(key);
      if ("wanted" in option) refuse(option.wanted);
      requireMode(key, option, context);
      if (values.has(option.target)) refuse("each option only once");
      values.set(option.target, parseValue(key, text, option.value, context.members));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      report(`the entry ${describeValue(entry.trim())}`, error.wanted);
    }
  }
  const settings = settingsFrom(values);
  if (mismatches.length === 0) {
    for (const wanted of contradictions(settings, context.mode ?? 0)) report(describeValue(options), wanted);
  }
  return { settings, mismatches };
}
