import type { RuleState } from "../../../plan/state.ts";
import { formatRule } from "../../../plan/text.ts";
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
import { encodeRuleMessage, type RuleMessage } from "../families.ts";
import { decodeFamily, decodePrefixOf, encodeFamily, encodePrefix } from "../ip-bytes.ts";
import {
  FIB_RULE_STATE,
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

/** Without `tos`, `protocol` and `rest`: 0, unknown and none. */
export type Rule = Omit<RuleState, Unneeded> & Partial<Pick<RuleState, Unneeded>>;

type Unneeded = "tos" | "protocol" | "rest";

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

/** Returns whether the attribute is kept undecoded. Rules that suppress nothing have FRA_SUPPRESS_PREFIXLEN -1. */
function isUnread({ type, value }: Attribute): boolean {
  if (KNOWN.has(type)) return false;
  return type !== FRA_SUPPRESS_PREFIXLEN || decodeUint32(value) !== 0xffff_ffff;
}

/** Returns undefined for families other than IP. Throws NetlinkError for contradicting lengths and families. */
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

/** Formats the rule for errors. */
export function describeRule({ tos = 0, protocol = 0, rest = [], ...rule }: Rule): string {
  return `IPv${rule.family} rule ${formatRule({ ...rule, tos, protocol, rest })}`;
}
