/**
 * Questions about routing rules, and changes of them.
 * Effects: those of the conversation.
 */
import { FAMILIES, type Family } from "../../../net/ip.ts";
import { ENOENT } from "../../errno.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../constants.ts";
import type { Conversation } from "../conversation.ts";
import { encodeFamily } from "../ip-bytes.ts";
import { unlessRefused } from "../refusal.ts";
import { RTM_DELRULE, RTM_GETRULE, RTM_NEWRULE } from "./constants.ts";
import { decodeRuleMessage, encodeRuleMessage, type RuleMessage } from "./message.ts";
import { encodeRule, formatRule, type Rule } from "./rule.ts";

export function encodeRuleQuestion(family: Family): Uint8Array {
  return encodeRuleMessage({
    family: encodeFamily(family),
    toLength: 0,
    fromLength: 0,
    tos: 0,
    table: 0,
    action: 0,
    flags: 0,
    attributes: [],
  });
}

/** In the kernel's order, which is that of evaluation; without a family IPv4's before IPv6's. */
export function listRules(conversation: Conversation, family?: Family): RuleMessage[] {
  const families = family === undefined ? FAMILIES : [family];
  return families.flatMap((one) => {
    const operation = `list IPv${one} rules`;
    return conversation.dump({ operation, type: RTM_GETRULE, payload: encodeRuleQuestion(one) }).map(decodeRuleMessage);
  });
}

/** Throws a NetlinkError with EEXIST when the same rule is there already. */
export function createRule(conversation: Conversation, rule: Rule): void {
  const operation = `add IPv${rule.family} rule ${formatRule(rule)}`;
  const flags = NLM_F_CREATE | NLM_F_EXCL;
  conversation.request({ operation, type: RTM_NEWRULE, flags, payload: encodeRule(rule) });
}

/** Whether it was there. What the rule leaves out is not compared: give the whole rule. */
export function deleteRule(conversation: Conversation, rule: Rule): boolean {
  const operation = `delete IPv${rule.family} rule ${formatRule(rule)}`;
  const payload = encodeRule(rule);
  return unlessRefused([ENOENT], () => conversation.request({ operation, type: RTM_DELRULE, payload })) !== undefined;
}
