/**
 * Rule messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5     7        8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ pad ┼ action ┼ flags ┼ attributes …   (linux/fib_rules.h, struct fib_rule_hdr)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
import { putUint32, uint8At, uint32At } from "../numbers.ts";
import { RTM_NEWRULE } from "./constants.ts";

const FIXED_BYTES = 12;

export interface RuleMessage {
  /** AF_* */
  readonly family: number;
  readonly toLength: number;
  readonly fromLength: number;
  readonly tos: number;
  /** The attribute FRA_TABLE goes before it. */
  readonly table: number;
  /** FR_ACT_* */
  readonly action: number;
  /** FIB_RULE_* */
  readonly flags: number;
  readonly attributes: readonly Attribute[];
}

export function encodeRuleMessage(message: RuleMessage): Uint8Array {
  const { family, toLength, fromLength, tos, table, action, flags, attributes } = message;
  const bytes = encodeAttributes(attributes, FIXED_BYTES);
  bytes.set([family, toLength, fromLength, tos, table, 0, 0, action]);
  putUint32(bytes, 8, flags);
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. */
export function decodeRuleMessage({ type, payload }: Message): RuleMessage {
  if (type !== RTM_NEWRULE) throw malformed("rule message", 4, `type ${type}`, `RTM_NEWRULE (${RTM_NEWRULE})`);
  if (payload.length < FIXED_BYTES) throw malformed("rule message", 0, `${payload.length} bytes`, "12 or more");
  return {
    family: uint8At(payload, 0),
    toLength: uint8At(payload, 1),
    fromLength: uint8At(payload, 2),
    tos: uint8At(payload, 3),
    table: uint8At(payload, 4),
    action: uint8At(payload, 7),
    flags: uint32At(payload, 8),
    attributes: decodeAttributes(payload, FIXED_BYTES),
  };
}
