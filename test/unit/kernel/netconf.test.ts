import { describe, expect, it } from "vitest";
import { attribute, encodeUint32, nest } from "../../../host/kernel/netlink/attribute.ts";
import { AF_INET } from "../../../host/kernel/netlink/constants.ts";
import type { Conversation, Request } from "../../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeLink, encodeNetconf, type LinkMessage } from "../../../host/kernel/netlink/families.ts";
import { readLinkSetting } from "../../../host/kernel/netlink/link/setting.ts";
import type { Message } from "../../../host/kernel/netlink/message.ts";
import { netconfOf } from "../../../host/kernel/netlink/netconf/netconf.ts";
import { readSysctlsByNetlink } from "../../../host/kernel/netlink/netconf/read-sysctls.ts";
import { answersTo } from "./recorded.ts";
import { SILENT } from "./silent-conversation.ts";

const RTM_NEWNETCONF = 80;

it("messages with a value of another length are refused", () => {
  const short = { family: AF_INET, attributes: [attribute(3, Uint8Array.of(1))] };
  expect(() => netconfOf(short)).toThrow(/found 1 bytes, want 4/);
});

/** A kernel that answers each question by `answer`, and its questions. */
function scripted(answer: (request: Request) => Message[]): { conversation: Conversation; requested: Request[] } {
  const requested: Request[] = [];
  const request = (one: Request): Message[] => {
    requested.push(one);
    return answer(one);
  };
  return { requested, conversation: { ...SILENT, request, dump: request } };
}

const allIs = (forwarding: number, rpFilter: number): Message[] => [
  {
    ...{ type: RTM_NEWNETCONF, flags: 0, sequence: 1 },
    payload: encodeNetconf({
      family: AF_INET,
      attributes: [[1, -1] as const, [2, forwarding] as const, [3, rpFilter] as const].map(([type, value]) =>
        attribute(type, encodeUint32(value)),
      ),
    }),
  },
];

const refusing = (errno: number) => () => {
  throw new NetlinkError({ operation: "ask", errno });
};

const v0: LinkMessage = decodeLink(answersTo("link", "ip link show dev v0")[0] ?? expect.unreachable());
const bare: LinkMessage = { deviceType: 1, index: 7, flags: 0, change: 0, attributes: [] };
const IFLA_AF_SPEC = 26;
const withConf = (words: Uint8Array): LinkMessage => ({
  ...bare,
  attributes: [nest(IFLA_AF_SPEC, [nest(AF_INET, [attribute(1, words)])])],
});

describe("settings of a link", () => {
  it("are among the values of its message", () => {
    expect(readLinkSetting(v0, 6, 26)).toBe(0);
    expect(readLinkSetting(v0, 4, 7)).toBe(0);
    // hop limit and accept_dad
    expect(readLinkSetting(v0, 6, 1)).toBe(64);
    expect(readLinkSetting(v0, 6, 27)).toBe(1);
  });

  it("are none where the link is without the protocol, or the kernel without the setting", () => {
    expect(readLinkSetting(bare, 4, 7)).toBeUndefined();
    expect(readLinkSetting(withConf(new Uint8Array(32)), 6, 26)).toBeUndefined();
    expect(readLinkSetting(withConf(new Uint8Array(28)), 4, 7)).toBeUndefined();
    expect(readLinkSetting(withConf(new Uint8Array(32).fill(255)), 4, 7)).toBe(-1);
    expect(() => readLinkSetting(withConf(new Uint8Array(33)), 4, 7)).toThrow(/found 33 bytes, want words of 4/);
  });
});

describe("answers to keys", () => {
  const answer = (conversation: Conversation, keys: readonly string[]) =>
    Object.fromEntries(readSysctlsByNetlink(conversation, keys, (name) => (name === "v0.5" ? v0 : undefined)));

  it("are the values of a file; the kernel is asked once for each protocol", () => {
    const { conversation, requested } = scripted(() => allIs(1, 2));
    const ones = ["ipv4/ip_forward", "ipv4/conf/all/forwarding", "ipv6/conf/v0.5/accept_dad"];
    const answers = answer(conversation, ["ipv4/conf/all/rp_filter", ...ones]);
    expect(answers).toEqual({ "ipv4/conf/all/rp_filter": "2", ...Object.fromEntries(ones.map((key) => [key, "1"])) });
    expect(requested.length).toBe(1);
  });

  it.each([
    ["another setting", "ipv4/conf/all/arp_notify"],
    ["one that messages about all links do not have", "ipv6/conf/all/disable_ipv6"],
    ["a link that has no message", "ipv4/conf/gone0/rp_filter"],
    ["a key that is too long", "ipv4/conf/v0.5/rp_filter/more"],
    ["a key that is too short", "ipv4/conf"],
    ["a setting of neighbours", "ipv4/neigh/v0.5/rp_filter"],
  ])("leave out %s", (_, key) => {
    const { conversation, requested } = scripted(() => expect.unreachable());
    expect(answer(conversation, [key])).toEqual({});
    expect(requested).toEqual([]);
  });

  it("leave out settings of a protocol that the kernel does not have; other refusals are errors", () => {
    const keys = ["ipv6/conf/all/forwarding"];
    expect(answer(scripted(refusing(95)).conversation, keys)).toEqual({});
    expect(() => answer(scripted(refusing(1)).conversation, keys)).toThrow(/EPERM/);
  });
});
