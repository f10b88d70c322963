import type { Family } from "../../../net/ip.ts";
import { formatPrefix, type Prefix } from "../../../net/prefix.ts";
import {
  type Attribute,
  attribute,
  decodeString,
  decodeUint8,
  decodeUint32,
  encodeString,
  encodeUint32,
  findValue,
  optional,
  present,
  readValue,
} from "../attribute.ts";
import { decodeFamily, decodePrefixOf, encodeFamily, encodePrefix } from "../ip-bytes.ts";
import {
  FIB_RULE_INVERT,
  FIB_RULE_STATE,
  FR_ACT_TO_TBL,
  FRA_DST,
  FRA_FWMARK,
  FRA_FWMASK,
  FRA_GOTO,
  FRA_IIFNAME,
  FRA_OIFNAME,
  FRA_PRIORITY,
  FRA_PROTOCOL,
  FRA_SRC,
  FRA_SUPPRESS_PREFIXLEN,
  FRA_TABLE,
} from "./constants.ts";
import { encodeRuleMessage, type RuleMessage } from "./message.ts";

export interface Rule {
  readonly family: Family;
  readonly preference: number;
  /** Undefined for all. */
  readonly from?: Prefix | undefined;
  /** Undefined for all. */
  readonly to?: Prefix | undefined;
  /** Matches packets whose masked mark equals this value. Undefined for any mark. */
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
  readonly tos?: number | undefined;
  /** RTPROT_*: the software that created the rule; undefined or 0 if unknown. */
  readonly protocol?: number | undefined;
  /** Attributes that are not decoded: ports, users and the like. */
  readonly rest?: readonly Attribute[] | undefined;
}

const KNOWN = new Set([
  FRA_DST,
  FRA_SRC,
  FRA_IIFNAME,
  FRA_OIFNAME,
  FRA_GOTO,
  FRA_PRIORITY,
  FRA_FWMARK,
  FRA_FWMASK,
  FRA_TABLE,
  FRA_PROTOCOL,
]);

/**
 * Returns whether the attribute is kept as it is. The kernel reports FRA_SUPPRESS_PREFIXLEN -1 for rules that
 * suppress nothing.
 */
function isUnread({ type, value }: Attribute): boolean {
  if (KNOWN.has(type)) return false;
  return type !== FRA_SUPPRESS_PREFIXLEN || decodeUint32(value) !== 0xffff_ffff;
}

/**
 * Returns undefined for families other than IP. Throws NetlinkError for lengths and families that contradict each
 * other.
 */
export function ruleOf(message: RuleMessage): Rule | undefined {
  const { attributes, fromLength, toLength } = message;
  const family = decodeFamily(message.family);
  if (family === undefined) return undefined;
  const value = readValue(attributes, FRA_FWMARK, decodeUint32);
  const mask = readValue(attributes, FRA_FWMASK, decodeUint32);
  return {
    family,
    preference: readValue(attributes, FRA_PRIORITY, decodeUint32) ?? 0,
    from: fromLength === 0 ? undefined : decodePrefixOf(family, findValue(attributes, FRA_SRC), fromLength),
    to: toLength === 0 ? undefined : decodePrefixOf(family, findValue(attributes, FRA_DST), toLength),
    mark: value === undefined && mask === undefined ? undefined : { value: value ?? 0, mask: mask ?? 0xffff_ffff },
    inputName: readValue(attributes, FRA_IIFNAME, decodeString),
    outputName: readValue(attributes, FRA_OIFNAME, decodeString),
    table: readValue(attributes, FRA_TABLE, decodeUint32) ?? message.table,
    action: message.action,
    goto: readValue(attributes, FRA_GOTO, decodeUint32),
    flags: message.flags & ~FIB_RULE_STATE,
    tos: message.tos,
    protocol: readValue(attributes, FRA_PROTOCOL, decodeUint8) ?? 0,
    rest: attributes.filter(isUnread),
  };
}

export function encodeRule(rule: Rule): Uint8Array {
  const { family, from, to, mark, table, action, flags, tos = 0, protocol = 0, rest = [] } = rule;
  const attributes = present([
    attribute(FRA_PRIORITY, encodeUint32(rule.preference)),
    optional(FRA_SRC, from && encodePrefix(from), (value) => value),
    optional(FRA_DST, to && encodePrefix(to), (value) => value),
    optional(FRA_FWMARK, mark?.value, encodeUint32),
    optional(FRA_FWMASK, mark?.mask, encodeUint32),
    optional(FRA_IIFNAME, rule.inputName, encodeString),
    optional(FRA_OIFNAME, rule.outputName, encodeString),
    optional(FRA_GOTO, rule.goto, encodeUint32),
    optional(FRA_TABLE, table > 255 ? table : undefined, encodeUint32),
    optional(FRA_PROTOCOL, protocol === 0 ? undefined : Uint8Array.of(protocol), (value) => value),
    ...rest,
  ]);
  return encodeRuleMessage({
    family: encodeFamily(family),
    toLength: to?.length ?? 0,
    fromLength: from?.length ?? 0,
    tos,
    table: table > 255 ? 0 : table,
    action,
    flags,
    attributes,
  });
}

/** Formats the rule as `ip rule` shows it: `99: from 10.6.0.21/32 fwmark 0x1/0x1 lookup 101`. */
export function formatRule({ preference, from, to, mark, inputName, outputName, table, action, flags }: Rule): string {
  const words = [
    `${preference}:`,
    (flags & FIB_RULE_INVERT) !== 0 && "not",
    `from ${from ? formatPrefix(from) : "all"}`,
    to && `to ${formatPrefix(to)}`,
    mark && `fwmark 0x${mark.value.toString(16)}/0x${mark.mask.toString(16)}`,
    inputName !== undefined && `iif ${inputName}`,
    outputName !== undefined && `oif ${outputName}`,
    action === FR_ACT_TO_TBL ? `lookup ${table}` : `action ${action}`,
  ];
  return words.filter((word) => word !== false && word !== undefined).join(" ");
}
