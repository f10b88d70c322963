import { describe, expect, it } from "vitest";
import { decodeAddress, prefixOf } from "../../../host/kernel/netlink/address/message.ts";
import { findAddresses } from "../../../host/kernel/netlink/address/requests.ts";
import { type Conversation, createConversation } from "../../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeIp, encodeIp } from "../../../host/kernel/netlink/ip-bytes.ts";
import { decodeLink } from "../../../host/kernel/netlink/link/message.ts";
import { findLink } from "../../../host/kernel/netlink/link/requests.ts";
import { decodeMessages, type Message } from "../../../host/kernel/netlink/message.ts";
import { parseIp } from "../../../host/net/ip.ts";
import { answersOf, scriptDatagrams } from "./scripted-datagrams.ts";
import { addressesAbsent, addressesV0, linkAbsent, linkV0, type Vector } from "./vectors.ts";

const conversationOver = (vector: Vector) => createConversation(scriptDatagrams([answersOf(vector)]));
const first = ({ answers: [answer] }: Vector): Message =>
  decodeMessages(answer ?? new Uint8Array())[0] ?? expect.unreachable();
const payloadOf = (datagram: Uint8Array | undefined) => decodeMessages(datagram ?? new Uint8Array())[0]?.payload;

/** The question has the payload of the vector's request. */
function expectRequest(vector: Vector, ask: (conversation: Conversation) => unknown): void {
  const socket = scriptDatagrams([answersOf(vector)]);
  ask(createConversation(socket));
  expect(payloadOf(socket.sent[0])).toEqual(payloadOf(vector.request));
}

describe("link messages", () => {
  it("ask as the captured requests do", () => {
    expectRequest(linkV0, (conversation) => findLink(conversation, "v0"));
    expectRequest(linkAbsent, (conversation) => findLink(conversation, "absent"));
  });

  it("of a link that is absent, or has the name only as an alternative, are none", () => {
    expect(findLink(conversationOver(linkAbsent), "absent")).toBeUndefined();
    expect(findLink(conversationOver(linkV0), "v0-alias")).toBeUndefined();
  });

  it("of another type, or shorter than their fixed part, are refused", () => {
    const message = first(linkV0);
    expect(() => decodeLink({ ...message, type: 20 })).toThrow(/found type 20, want RTM_NEWLINK/);
    for (let length = 0; length < 16; length++) {
      expect(() => decodeLink({ ...message, payload: message.payload.subarray(0, length) })).toThrow(NetlinkError);
    }
  });
});

describe("address messages", () => {
  it("of other links are left out", () => {
    expect(findAddresses(conversationOver(addressesV0), 8)).toEqual([]);
  });

  it("of a link that is gone are undefined", () => {
    expect(findAddresses(conversationOver(addressesAbsent), 99)).toBeUndefined();
  });

  it("of another type, or shorter than their fixed part, are refused", () => {
    const message = first(addressesV0);
    expect(() => decodeAddress({ ...message, type: 16 })).toThrow(/found type 16, want RTM_NEWADDR/);
    for (let length = 0; length < 8; length++) {
      expect(() => decodeAddress({ ...message, payload: message.payload.subarray(0, length) })).toThrow(NetlinkError);
    }
  });

  const address = () => decodeAddress(first(addressesV0));
  it("of families other than IP have no prefix", () => {
    expect(prefixOf({ ...address(), family: 16 })).toBeUndefined();
  });

  it("that contradict themselves are refused", () => {
    expect(() => prefixOf({ ...address(), attributes: [] })).toThrow(/no address/);
    expect(() => prefixOf({ ...address(), family: 10 })).toThrow(/family 10/);
    expect(() => prefixOf({ ...address(), prefixLength: 33 })).toThrow(/prefix length 33, want at most 32/);
    const attributes = [{ type: 2, flags: 0, value: new Uint8Array(5) }];
    expect(() => prefixOf({ ...address(), attributes })).toThrow(/5 bytes, want 4 or 16/);
  });
});

it.each(["0.0.0.0", "10.6.0.21", "255.255.255.255", "::", "fd00::21", "1:203:405:607:809:a0b:c0d:e0f"])(
  "address %s survives the way through bytes",
  (text) => {
    const ip = parseIp(text) ?? expect.unreachable();
    const bytes = encodeIp(ip);
    expect(bytes.length).toBe(ip.family === 4 ? 4 : 16);
    expect(decodeIp(bytes)).toEqual(ip);
  },
);

it("addresses are in network byte order", () => {
  expect(encodeIp({ family: 4, value: 0x0a060015n })).toEqual(Uint8Array.of(10, 6, 0, 21));
});
