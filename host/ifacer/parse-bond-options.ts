/**
 * `bond.options` as settings of a bond: `miimon=100; xmit_hash_policy=layer3+4` (specification 2.4, Resolved E).
 */
import { formatBondMode } from "../config/ifacer-conf.ts";
import { findClosest } from "../lib/closest.ts";
import { describeValue } from "../lib/describe.ts";
import type { Mismatch } from "../lib/schema.ts";
import { type Ip, isMulticast, parseIp } from "../net/ip.ts";
import { parseMac } from "../net/mac.ts";
import { BOND_NUMBER_NAMES, type BondSettings } from "../plan/bond.ts";
import {
  BOND_OPTIONS,
  type BondOption,
  type BondTarget,
  type BondValueType,
  MIIMON_BY_ITSELF,
  NEED_MIIMON,
  OTHER_PARAMETERS,
} from "./bond-options.ts";

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
