import { FAMILIES, type Family } from "../../../net/ip.ts";
import { EAFNOSUPPORT, EBUSY, ENOENT } from "../../errno.ts";
import { findValue } from "../attribute.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../constants.ts";
import type { Conversation, Request } from "../conversation.ts";
import { NetlinkError, unlessRefused } from "../error.ts";
import { decodeRuleMessage, encodeRuleMessage, type RuleMessage } from "../families.ts";
import { encodeFamily } from "../ip-bytes.ts";
import { RTM_DELRULE, RTM_GETRULE, RTM_NEWRULE } from "./constants.ts";
import { describeRule, encodeRule, type Rule, ruleOf } from "./rule.ts";

function encodeRuleDump(family: Family): Uint8Array {
  return encodeRuleMessage({ family: encodeFamily(family), attributes: [] });
}

/**
 * Returns the rules in the kernel's order of evaluation; IPv4's before IPv6's if no family is given. A kernel without
 * IPv6 (`ipv6.disable=1`) has no IPv6 rules.
 */
export function listRules(conversation: Conversation, family?: Family): RuleMessage[] {
  const families = family === undefined ? FAMILIES : [family];
  return families.flatMap((one) => {
    const operation = `list IPv${one} rules`;
    const ask = () => conversation.dump({ operation, type: RTM_GETRULE, payload: encodeRuleDump(one) });
    return unlessRefused([EAFNOSUPPORT], ask)?.map(decodeRuleMessage) ?? [];
  });
}

/** Returns the request to create the rule. The kernel refuses with EEXIST if there already is an equal one. */
export function newRule(rule: Rule): Request {
  const operation = () => `add ${describeRule(rule)}`;
  return { operation, type: RTM_NEWRULE, flags: NLM_F_CREATE | NLM_F_EXCL, payload: encodeRule(rule) };
}

/**
 * Returns whether the rule existed. The kernel deletes the first rule with all conditions of this one, even if it has
 * further conditions; {@link deleteWholeRule} does not.
 */
function deleteRule(conversation: Conversation, rule: Rule): boolean {
  const operation = `delete ${describeRule(rule)}`;
  const payload = encodeRule(rule);
  return unlessRefused([ENOENT], () => conversation.request({ operation, type: RTM_DELRULE, payload })) !== undefined;
}

/** Returns the rule as a message, with the attributes in a fixed order. */
function messageOf(rule: Rule): RuleMessage {
  const message = decodeRuleMessage({ type: RTM_NEWRULE, flags: 0, sequence: 0, payload: encodeRule(rule) });
  return { ...message, attributes: message.attributes.toSorted((a, b) => a.type - b.type) };
}

/** Returns whether a request to delete `wanted` would match `found`: it ignores inversion and absent fields. */
function wouldKernelDelete(found: RuleMessage, wanted: RuleMessage): boolean {
  const { tos, fromLength, toLength, action, table } = found;
  if (tos !== wanted.tos || fromLength !== wanted.fromLength || toLength !== wanted.toLength) return false;
  if (action !== wanted.action || table !== wanted.table) return false;
  return wanted.attributes.every(({ type, value }) => {
    const other = findValue(found.attributes, type);
    return other !== undefined && Buffer.compare(other, value) === 0;
  });
}

interface ListedRule {
  readonly message: RuleMessage;
  readonly bytes: Uint8Array;
}

/** Rules of each family listed by the first of several deletions, without those deleted since. */
export type ListedRules = Map<Family, ListedRule[]>;

const listedOf = (rule: Rule): ListedRule => {
  const message = messageOf(rule);
  return { message, bytes: encodeRuleMessage(message) };
};

/**
 * Deletes the rule that equals this one. Returns whether it existed. Consecutive deletions, with no other change in
 * between, may share `listed`; otherwise each lists the rules again. Throws NetlinkError (EBUSY) if a preceding rule of
 * another owner would be deleted instead.
 */
export function deleteWholeRule(conversation: Conversation, rule: Rule, listed: ListedRules = new Map()): boolean {
  const wanted = listedOf(rule);
  const isSame = ({ bytes }: ListedRule) => Buffer.compare(bytes, wanted.bytes) === 0;
  const found = listed.getOrInsertComputed(rule.family, () => {
    const reported = listRules(conversation, rule.family).map(ruleOf);
    return reported.flatMap((one) => (one === undefined ? [] : [listedOf(one)]));
  });
  const at = found.findIndex(isSame);
  if (at < 0) return false;
  const first = found.find(({ message }) => wouldKernelDelete(message, wanted.message));
  if (first !== undefined && !isSame(first)) {
    const operation = `delete ${describeRule(rule)}`;
    throw new NetlinkError({ operation, errno: EBUSY, message: "a rule with more conditions stands before it" });
  }
  found.splice(at, 1);
  return deleteRule(conversation, rule);
}
