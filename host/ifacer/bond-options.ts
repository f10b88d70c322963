/**
 * The kernel's options of a bond: what their values look like, which modes allow them, when they are set.
 * Sources: drivers/net/bonding/bond_options.c (names, values, `unsuppmodes`), Documentation/networking/bonding.rst. The numbers of their
 * netlink attributes are in kernel/netlink/link/bond.ts, under the same names but for those with a `netlink` name.
 */

import { formatBondMode } from "../config/ifacer-conf.ts";
import { findClosest } from "../lib/closest.ts";
import { describeValue } from "../lib/describe.ts";
import type { Mismatch } from "../lib/schema.ts";
import { type Ip, isMulticast, parseIp } from "../net/ip.ts";
import { parseMac } from "../net/mac.ts";
import { BOND_NUMBER_NAMES, type BondNumberName, type BondSettings } from "../plan/bond.ts";

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

/** Most addresses in `arp_ip_target` and in `ns_ip6_target`: the kernel's bond has room for no more (BOND_MAX_ARP_TARGETS). @limit */
export const MAX_TARGETS = 16;

type Value = number | string | readonly Ip[];

/** `mismatches` is empty when all is well. */
export interface ParsedBondOptions {
  readonly settings: BondSettings;
  readonly mismatches: readonly Mismatch[];
}

export interface BondContext {
  /** Undefined when the configuration names none: then it is the kernel's default, 0. */
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
  return value >= min && value <= max ? value : refuse(`${key}= and a whole number from ${min} to ${max}`);
}

function parseWord(key: string, text: string, words: readonly string[]): number {
  const value = /^[0-9]{1,2}$/.test(text) ? Number(text) : words.indexOf(text);
  if (value >= 0 && value < words.length) return value;
  const closest = findClosest(text, words);
  const choice = words.map((name, index) => `${name} (${index})`).join(", ");
  return refuse(closest === undefined ? `${key}= and one of ${choice}` : `"${key}=${closest}"`);
}

/** What the kernel takes as a target (`bond_is_ip_target_ok`, `bond_is_ip6_target_ok`). */
function isTarget(ip: Ip): boolean {
  const { family, value } = ip;
  return value !== 0n && !(family === 6 && isMulticast(ip)) && !(family === 4 ? value === 0xffff_ffffn : value === 1n);
}

function parseAddresses(key: string, text: string, family: 4 | 6): Ip[] {
  const wanted = `${key}= and IPv${family} addresses with commas between, at most ${MAX_TARGETS}, none twice`;
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
      return mac === undefined || isMulticast ? refuse(`${key}= and a MAC address of one station`) : mac;
    }
    case "member":
      return members.includes(text) ? text : refuse(`${key}= and one of the members ${members.join(", ")}`);
  }
}

/** Undefined for a key that is none; then `wanted` says what to write. */
function findOption(key: string): BondOption | { readonly wanted: string } {
  if (Object.hasOwn(BOND_OPTIONS, key)) return BOND_OPTIONS[key] ?? { wanted: "" };
  const other = OTHER_PARAMETERS.get(key);
  if (other !== undefined) return { wanted: other };
  const names = Object.keys(BOND_OPTIONS);
  const closest = findClosest(key, names);
  return { wanted: closest === undefined ? `an option of bonds: ${names.join(", ")}` : `the option "${closest}"` };
}

/** The key and value of a piece; both trimmed. */
function splitPiece(piece: string): { key: string; text: string } {
  const equals = piece.indexOf("=");
  const key = (equals < 0 ? piece : piece.slice(0, equals)).trim();
  const text = equals < 0 ? "" : piece.slice(equals + 1).trim();
  if (key === "") refuse("<option>=<value>");
  if (text === "") refuse(`"${key}=<value>"`);
  return { key, text };
}

function requireMode(key: string, { modes }: BondOption, { mode }: BondContext): void {
  if (modes === undefined || modes.includes(mode ?? 0)) return;
  const unsaid = mode === undefined ? ", which holds when bond.mode is not set" : "";
  refuse(`no ${key} in mode ${formatBondMode(mode ?? 0)}${unsaid}; it is for ${modes.map(formatBondMode).join(", ")}`);
}

function settingsFrom(values: ReadonlyMap<BondTarget, Value>): BondSettings {
  const isNumber = (target: BondTarget): boolean => BOND_NUMBER_NAMES.some((name) => name === target);
  const numbers = Object.fromEntries([...values].filter(([target]) => isNumber(target)));
  const rest = Object.fromEntries([...values].filter(([target]) => !isNumber(target)));
  return { numbers, ...rest };
}

/** What the kernel refuses of several options together; the first is named. */
function contradictions(settings: BondSettings, mode: number): string[] {
  const { numbers } = settings;
  const { miimon = MIIMON_BY_ITSELF.includes(mode) ? 100 : 0, arp_interval = 0, arp_validate = 0 } = numbers;
  const late = NEED_MIIMON.filter((name) => numbers[name] !== undefined && miimon === 0);
  return [
    ...late.map((name) => `a miimon above 0 with ${name}`),
    ...(miimon > 0 && arp_interval > 0 ? ["one of miimon and arp_interval: the links are watched in one way"] : []),
    ...(miimon > 0 && arp_validate > 0
      ? ["one of miimon and arp_validate: it checks ARP, which miimon does without"]
      : []),
  ];
}

/** Pieces with `;` between; a last one that is blank does not count. */
export function parseBondOptions(options: string, context: BondContext): ParsedBondOptions {
  const pieces = options.split(";");
  if (pieces.at(-1)?.trim() === "") pieces.pop();
  const values = new Map<BondTarget, Value>();
  const mismatches: Mismatch[] = [];
  const report = (got: string, wanted: string): void => void mismatches.push({ path: "bond.options", got, wanted });
  for (const piece of pieces) {
    try {
      const { key, text } = splitPiece(piece);
      const option = findOption(key);
      if ("wanted" in option) refuse(option.wanted);
      requireMode(key, option, context);
      if (values.has(option.target)) refuse(`each option once`);
      values.set(option.target, parseValue(key, text, option.value, context.members));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      report(`the piece ${describeValue(piece.trim())}`, error.wanted);
    }
  }
  const settings = settingsFrom(values);
  if (mismatches.length === 0) {
    for (const wanted of contradictions(settings, context.mode ?? 0)) report(describeValue(options), wanted);
  }
  return { settings, mismatches };
}
