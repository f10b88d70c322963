/** Attributes that the kernel's messages lack, or have of another family, are none, or refused with NetlinkError. */
import { describe, expect, it } from "vitest";
import { addressOf, prefixOf } from "../../../host/kernel/netlink/address/address.ts";
import { findAddresses } from "../../../host/kernel/netlink/address/requests.ts";
import { attribute } from "../../../host/kernel/netlink/attribute.ts";
import { createConversation } from "../../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import {
  decodeAddress,
  decodeNeighbourMessage,
  decodeRouteMessage,
  decodeRuleMessage,
} from "../../../host/kernel/netlink/families.ts";
import { findLink } from "../../../host/kernel/netlink/link/requests.ts";
import { NDA_CACHEINFO } from "../../../host/kernel/netlink/neighbour/constants.ts";
import { confirmedAgoMs, neighbourOf } from "../../../host/kernel/netlink/neighbour/neighbour.ts";
import { routeOf } from "../../../host/kernel/netlink/route/route.ts";
import { ruleOf } from "../../../host/kernel/netlink/rule/rule.ts";
import { readers } from "./readers.ts";
import { answersTo, type Family, FIXED_BYTES } from "./recorded.ts";
import { answersOf, scriptDatagrams } from "./scripted-datagrams.ts";
import { addressesAbsent, addressesV0, linkAbsent, linkV0, type Vector } from "./vectors.ts";

const families = Object.entries(FIXED_BYTES) as [Family, number][];
it.each(families)(
  "%s messages shorter than their fixed part of %i bytes, or of another type, are refused",
  (family, bytes) => {
    const known = answersTo(family).filter(({ type }) => readers.has(type));
    expect(known.length).toBeGreaterThan(0);
    for (const message of known) {
      const read = readers.get(message.type) ?? expect.unreachable();
      read(message);
      for (let length = 0; length < bytes; length++)
        expect(() => read({ ...message, payload: message.payload.subarray(0, length) })).toThrow(NetlinkError);
      expect(() => read({ ...message, type: message.type + 1 })).toThrow(/found type \d+, want/);
    }
  },
);

const conversationOver = (vector: Vector) => createConversation(scriptDatagrams([answersOf(vector)]));

it("a link that is absent, or has the name only as an alternative, is none", () => {
  expect(findLink(conversationOver(linkAbsent), "absent")).toBeUndefined();
  expect(findLink(conversationOver(linkV0), "v0-alias")).toBeUndefined();
});

describe("addresses", () => {
  it("of other links are left out, and of a link that is gone undefined", () => {
    expect(findAddresses(conversationOver(addressesV0), 8)).toEqual([]);
    expect(findAddresses(conversationOver(addressesAbsent), 99)).toBeUndefined();
  });

  const [address = expect.unreachable()] = createConversation(scriptDatagrams([answersOf(addressesV0)]))
    .dump({ operation: "ask", type: 22, payload: new Uint8Array(8) })
    .map(decodeAddress);
  it("of families other than IP have no prefix, and those that contradict themselves are refused", () => {
    expect(prefixOf({ ...address, family: 16 })).toBeUndefined();
    expect(addressOf({ ...address, family: 28 })).toBeUndefined();
    expect(() => prefixOf({ ...address, attributes: [] })).toThrow(/no address/);
    expect(() => prefixOf({ ...address, family: 10 })).toThrow(/4 bytes, want 16/);
    expect(() => prefixOf({ ...address, prefixLength: 33 })).toThrow(/length 33, want at most 32/);
    const attributes = [{ type: 2, flags: 0, value: new Uint8Array(5) }];
    expect(() => prefixOf({ ...address, attributes })).toThrow(/5 bytes, want 4 or 16/);
    const withPeer = { ...address, attributes: [...address.attributes, attribute(1, new Uint8Array(16))] };
    expect(() => addressOf(withPeer)).toThrow(/16 bytes, want 4/);
  });
});

const first = (family: Family, command: string) => answersTo(family, command)[0] ?? expect.unreachable(command);
const route = decodeRouteMessage(first("route", "ip route show table 500"));
const rule = decodeRuleMessage(first("rule", "ip rule show"));
const neighbour = decodeNeighbourMessage(first("neighbour", "ip neigh show dev v0"));

it("routes, rules and neighbours of families other than IP are none, nor is a neighbour without an address", () => {
  expect(routeOf({ ...route, family: 28 })).toBeUndefined();
  expect(ruleOf({ ...rule, family: 28 })).toBeUndefined();
  for (const change of [{ family: 7 }, { attributes: [] }])
    expect(neighbourOf({ ...neighbour, ...change })).toBeUndefined();
});

const to = attribute(1, new Uint8Array(4));
const via = (length: number) => ({ attributes: [to, attribute(18, new Uint8Array(length))] });
const nextHop = (...bytes: number[]) => ({ attributes: [to, attribute(9, Uint8Array.from(bytes))] });

it.each<[what: string, change: object, expected: RegExp]>([
  ["a prefix length beyond the family", { destinationLength: 33 }, /length 33, want at most 32/],
  ["a prefix length without address", { attributes: [] }, /length 16 without address/],
  ["an address of the other family", { family: 10 }, /4 bytes, want 16/],
  ["a source length beyond the family", { sourceLength: 40 }, /length 40, want at most 32/],
  ["a via of no family", via(6), /family 0/],
  ["a via without family", via(1), /undefined/],
  ["half a next hop", nextHop(0, 0, 0, 0, 0, 0, 0), /length 0/],
  ["a next hop of length 0", nextHop(0, 0, 0, 0, 0, 0, 0, 0), /next hop.*length 0, want 8 to 8/],
  ["a next hop longer than its list", nextHop(9, 0, 0, 0, 0, 0, 0, 0), /length 9, want 8 to 8/],
])("a route with %s is refused", (_, change, text) => expect(() => routeOf({ ...route, ...change })).toThrow(text));

it.each<[what: string, change: object, expected: RegExp]>([
  ["a length beyond the family", { fromLength: 33 }, /length 33, want at most 32/],
  ["a length without address", { toLength: 8 }, /length 8 without address/],
  ["an address of the other family", { toLength: 8, attributes: [attribute(1, new Uint8Array(16))] }, /want 4/],
  ["a preference of two bytes", { attributes: [attribute(6, new Uint8Array(2))] }, /2 bytes, want 4/],
  ["a device name without end", { attributes: [attribute(3, new Uint8Array([97]))] }, /a NUL at -1/],
])("a rule with %s is refused", (_, change, text) => expect(() => ruleOf({ ...rule, ...change })).toThrow(text));

it("a rule with a mask only, or a mark only, has both", () => {
  const one = (type: number) => ruleOf({ ...rule, attributes: [attribute(type, Uint8Array.of(1, 0, 0, 0))] })?.mark;
  expect([one(10), one(16)]).toEqual([
    { value: 1, mask: 0xffff_ffff },
    { value: 0, mask: 1 },
  ]);
});

it("a neighbour's address is of its family, and it says when the neighbour last proved to have its MAC address", () => {
  const other = attribute(1, new Uint8Array(neighbour.family === 2 ? 16 : 4));
  expect(() => neighbourOf({ ...neighbour, attributes: [other] })).toThrow(NetlinkError);
  // struct nda_cacheinfo: confirmed, used, updated in hundredths of a second; references.
  const cacheInfo = attribute(NDA_CACHEINFO, Uint8Array.of(0x2c, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0));
  expect(confirmedAgoMs({ ...neighbour, attributes: [cacheInfo] })).toBe(3_000);
  expect(confirmedAgoMs({ ...neighbour, attributes: [] })).toBeUndefined();
});
