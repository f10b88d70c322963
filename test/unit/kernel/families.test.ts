/** What the kernel's messages lack, or have of another family: they are none, or refused with NetlinkError. */
import { describe, expect, it } from "vitest";
import { prefixOf } from "../../../host/kernel/netlink/address/address.ts";
import { findAddresses } from "../../../host/kernel/netlink/address/requests.ts";
import { createConversation } from "../../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeAddress } from "../../../host/kernel/netlink/families.ts";
import { findLink } from "../../../host/kernel/netlink/link/requests.ts";
import { readers } from "./readers.ts";
import { type Family, FIXED_BYTES, messageOf, readRecorded } from "./recorded.ts";
import { answersOf, scriptDatagrams } from "./scripted-datagrams.ts";
import { addressesAbsent, addressesV0, linkAbsent, linkV0, type Vector } from "./vectors.ts";

const families = Object.entries(FIXED_BYTES) as [Family, number][];
it.each(families)(
  "%s messages shorter than their fixed part of %i bytes, or of another type, are refused",
  (family, bytes) => {
    const messages = readRecorded(family).flatMap(({ received }) => received.map(messageOf));
    const known = messages.filter(({ type }) => readers.has(type));
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
    expect(() => prefixOf({ ...address, attributes: [] })).toThrow(/no address/);
    expect(() => prefixOf({ ...address, family: 10 })).toThrow(/4 bytes, want 16/);
    expect(() => prefixOf({ ...address, prefixLength: 33 })).toThrow(/length 33, want at most 32/);
    const attributes = [{ type: 2, flags: 0, value: new Uint8Array(5) }];
    expect(() => prefixOf({ ...address, attributes })).toThrow(/5 bytes, want 4 or 16/);
  });
});
