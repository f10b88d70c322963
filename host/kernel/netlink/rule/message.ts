/**
 * Rule messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5     7        8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ pad ┼ action ┼ flags ┼ attributes …
 *      (linux/fib_rules.h, struct fib_rule_hdr)
 */
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWRULE } from "./constants.ts";

const CODEC = fixedPart({
  name: "rule message",
  type: RTM_NEWRULE,
  typeName: "RTM_NEWRULE",
  bytes: 12,
  fields: {
    /** AF_* */
    family: [0, "uint8"],
    toLength: [1, "uint8"],
    fromLength: [2, "uint8"],
    tos: [3, "uint8"],
    /** The attribute FRA_TABLE takes precedence. */
    table: [4, "uint8"],
    /** FR_ACT_* */
    action: [7, "uint8"],
    /** FIB_RULE_* */
    flags: [8, "uint32"],
  },
});

export type RuleMessage = ReturnType<typeof CODEC.decode>;

export const encodeRuleMessage = CODEC.encode;

export const decodeRuleMessage = CODEC.decode;
