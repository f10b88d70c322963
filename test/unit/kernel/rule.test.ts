import { describe, expect, it } from "vitest";
import { attribute } from "../../../host/kernel/netlink/attribute.ts";
import { decodeRuleMessage } from "../../../host/kernel/netlink/families.ts";
import { createRule, deleteRule, listRules } from "../../../host/kernel/netlink/rule/requests.ts";
import { describeRule, type Rule, ruleOf } from "../../../host/kernel/netlink/rule/rule.ts";
import { prefix } from "../../world/values.ts";
import { type Ask, answersTo, itSends, sentFor } from "./recorded.ts";

const plain = { family: 4, action: 1, flags: 0 } as const;

const given = (preference: number, table: number, more: Partial<Rule> = {}): Rule => ({
  ...{ family: 4, action: 1, flags: 0, preference, table },
  ...more,
});
const [local, remote] = [
  { value: 1, mask: 1 },
  { value: 0x8000_0000, mask: 0xffff_ffff },
];
const tcpTo80 = [attribute(22, Uint8Array.of(6)), attribute(24, Uint8Array.of(80, 0, 80, 0))];

const made: Record<string, Rule> = {
  "ip rule add pref 900 from all lookup 500": given(900, 500),
  "ip rule add pref 99 from 10.6.0.21/32 to 10.0.0.0/8 fwmark 0x1/0x1 iif v0 lookup 101": given(99, 101, {
    ...{ from: prefix("10.6.0.21"), to: prefix("10.0.0.0/8"), mark: local, inputName: "v0" },
  }),
  "ip -6 rule add pref 99 from fd00::21/128 lookup 101": given(99, 101, { family: 6, from: prefix("fd00::21") }),
  "ip rule add pref 98 not from 10.7.0.0/16 fwmark 0x80000000/0xffffffff oif v0 lookup 102": given(98, 102, {
    ...{ from: prefix("10.7.0.0/16"), mark: remote, outputName: "v0", flags: 2 },
  }),
  "ip rule add pref 97 from all lookup main suppress_prefixlength 0": given(97, 254, {
    rest: [attribute(14, new Uint8Array(4))],
  }),
  "ip rule add pref 95 from all lookup 500 protocol 98": given(95, 500, { protocol: 98 }),
  "ip rule add pref 96 from all ipproto tcp dport 80 blackhole": given(96, 0, { action: 6, rest: tcpTo80 }),
};

const others: Record<string, Ask> = {
  "ip rule show": (to) => listRules(to, 4),
  "ip -6 rule show": (to) => listRules(to, 6),
  // `ip` names no action in a deletion: any
  "ip rule del pref 900 from all lookup 500": (to) =>
    expect(deleteRule(to, { ...plain, action: 0, preference: 900, table: 500 })).toBe(true),
  "ip rule del pref 901 from all lookup 500": (to) =>
    expect(deleteRule(to, { ...plain, action: 0, preference: 901, table: 500 })).toBe(false),
  "ip rule del pref 95 from all lookup 500 protocol 98": (to) =>
    expect(deleteRule(to, { ...plain, action: 0, preference: 95, table: 500, protocol: 98 })).toBe(true),
};

describe("rule requests", () => {
  itSends("rule", made, createRule, others);
});

describe("rules", () => {
  it("are read from the kernel's messages, in its order", () => {
    const v4 = answersTo("rule", "ip rule show").map(decodeRuleMessage).map(ruleOf);
    const v6 = answersTo("rule", "ip -6 rule show").map(decodeRuleMessage).map(ruleOf);
    expect([...v4, ...v6].map((rule) => rule && describeRule(rule))).toEqual([
      "IPv4 rule pref 0 from all lookup 255 proto kernel",
      "IPv4 rule pref 95 from all lookup 500 proto 98",
      "IPv4 rule pref 96 from all action 6 and 3 more",
      "IPv4 rule pref 97 from all lookup 254 and 1 more",
      "IPv4 rule not pref 98 from 10.7.0.0/16 fwmark 0x80000000/0xffffffff oif v0 lookup 102",
      "IPv4 rule pref 99 from 10.6.0.21 to 10.0.0.0/8 fwmark 0x1/0x1 iif v0 lookup 101",
      "IPv4 rule pref 900 from all lookup 500",
      "IPv4 rule pref 32766 from all lookup 254 proto kernel",
      "IPv4 rule pref 32767 from all lookup 253 proto kernel",
      "IPv6 rule pref 0 from all lookup 255 proto kernel",
      "IPv6 rule pref 99 from fd00::21 lookup 101",
      "IPv6 rule pref 32766 from all lookup 254 proto kernel",
    ]);
  });

  it.each(sentFor("rule", made))("are read from what `ip` sends: $command", ({ value: rule, message }) =>
    expect(ruleOf(decodeRuleMessage(message))).toEqual({ tos: 0, protocol: 0, rest: [], ...rule }),
  );

  it("of other families are none", () => {
    const [message] = answersTo("rule", "ip rule show").map(decodeRuleMessage);
    expect(message && ruleOf({ ...message, family: 28 })).toBeUndefined();
  });

  it("with a mask only, or a mark only, have both", () => {
    const decoded = decodeRuleMessage(answersTo("rule", "ip rule show")[0] ?? expect.unreachable());
    const one = (type: number) => ({ ...decoded, attributes: [attribute(type, Uint8Array.of(1, 0, 0, 0))] });
    expect(ruleOf(one(10))?.mark).toEqual({ value: 1, mask: 0xffff_ffff });
    expect(ruleOf(one(16))?.mark).toEqual({ value: 0, mask: 1 });
  });
});

describe("rule messages", () => {
  const [message = expect.unreachable()] = answersTo("rule", "ip rule show");
  const decoded = decodeRuleMessage(message);
  it.each<[what: string, change: object, expected: RegExp]>([
    ["a length beyond the family", { fromLength: 33 }, /length 33, want at most 32/],
    ["a length without address", { toLength: 8 }, /length 8 without address/],
    ["an address of the other family", { toLength: 8, attributes: [attribute(1, new Uint8Array(16))] }, /want 4/],
    ["a preference of two bytes", { attributes: [attribute(6, new Uint8Array(2))] }, /2 bytes, want 4/],
    ["a device name without end", { attributes: [attribute(3, new Uint8Array([97]))] }, /a NUL at -1/],
  ])("with %s are refused", (_, change, expected) => expect(() => ruleOf({ ...decoded, ...change })).toThrow(expected));
});
