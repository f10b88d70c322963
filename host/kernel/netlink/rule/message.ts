/**
 * Rule messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5     7        8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ pad ┼ action ┼ flags ┼ attributes …
 *      (linux/fib_rules.h, struct fib_rule_hdr)
 */
import type { Attribute } from "../attribute.ts";
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWRULE } from "./constants.ts";

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

const CODEC = fixedPart<RuleMessage>({
  name: "rule message",
  type: RTM_NEWRULE,
  typeName: "RTM_NEWRULE",
  bytes: 12,
  fields: {
    family: [0, "uint8"],
    toLength: [1, "uint8"],
    fromLength: [2, "uint8"],
    tos: [3, "uint8"],
    table: [4, "uint8"],
    action: [7, "uint8"],
    flags: [8, "uint32"],
  },
});

export const encodeRuleMessage = CODEC.encode;

export const decodeRuleMessage = CODEC.decode;
