/**
 * Rule messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5     7        8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ pad ┼ action ┼ flags ┼ attributes …   (linux/fib_rules.h, struct fib_rule_hdr)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { type FixedPart, type Message, type MessageSpec, requireFixedPart } from "../message.ts";
import { putUint32, uint8At, uint32At } from "../numbers.ts";
import { RTM_NEWRULE } from "./constants.ts";

const FIXED: FixedPart = { name: "rule message", type: RTM_NEWRULE, typeName: "RTM_NEWRULE", bytes: 12 };

export interface RuleMessage {
  /** AF_* */
  readonly family: number;
  readonly toLength: number;
  readonly fromLength: number;
  readonly tos: number;
  /** The attribute FRA_TABLE takes precedence. */
  readonly table: number;
  /** FR_ACT_* */
  readonly action: number;
  /** FIB_RULE_* */
  readonly flags: number;
  readonly attributes: readonly Attribute[];
}

/** Fields that are left out are 0. */
export function encodeRuleMessage(message: MessageSpec<RuleMessage>): Uint8Array {
  const { family, toLength = 0, fromLength = 0, tos = 0, table = 0, action = 0, flags = 0, attributes } = message;
  const bytes = encodeAttributes(attributes, FIXED.bytes);
  bytes.set([family, toLength, fromLength, tos, table, 0, 0, action]);
  putUint32(bytes, 8, flags);
  return bytes;
}

/** Throws NetlinkError for a message of another type, and for false lengths. */
export function decodeRuleMessage(message: Message): RuleMessage {
  const { payload } = message;
  requireFixedPart(message, FIXED);
  return {
    family: uint8At(payload, 0),
    toLength: uint8At(payload, 1),
    fromLength: uint8At(payload, 2),
    tos: uint8At(payload, 3),
    table: uint8At(payload, 4),
    action: uint8At(payload, 7),
    flags: uint32At(payload, 8),
    attributes: decodeAttributes(payload, FIXED.bytes),
  };
}
