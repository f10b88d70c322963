import { describe, expect, it } from "vitest";
import {
  type Attribute,
  decodeAttributes,
  decodeString,
  decodeUint32,
  encodeAttributes,
  encodeString,
  encodeUint32,
  findValue,
} from "../../../host/kernel/netlink/attribute.ts";
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSG_ERROR } from "../../../host/kernel/netlink/constants.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeAcknowledgement, decodeMessages } from "../../../host/kernel/netlink/message.ts";
import { addressesAbsent, addressesV0, linkAbsent, linkNameTooLong, linkV0 } from "./vectors.ts";

/** Flags of answers; linux/netlink.h. */
const NLM_F_MULTI = 0x2;
const NLM_F_DUMP_FILTERED = 0x20;

const bytes = (...values: number[]) => Uint8Array.from(values);
const only = (datagram: Uint8Array | undefined) => decodeMessages(datagram ?? bytes())[0] ?? expect.unreachable();

/** A header that claims `length`, and `size` bytes in all. */
function claim(length: number, size: number): Uint8Array {
  const datagram = new Uint8Array(size);
  if (size >= 4) new DataView(datagram.buffer).setUint32(0, length, true);
  return datagram;
}

describe("decodeMessages", () => {
  it("reads all messages of a datagram", () => {
    const messages = decodeMessages(addressesV0.answers[0] ?? bytes());
    const found = messages.map(({ type, flags, sequence, payload }) => [type, flags, sequence, payload.length]);
    expect(found).toEqual([60, 60, 56, 64].map((length) => [20, NLM_F_MULTI | NLM_F_DUMP_FILTERED, 4, length]));
  });

  it("reads none from nothing, and a header alone as an empty message", () => {
    expect(decodeMessages(bytes())).toEqual([]);
    expect(decodeMessages(claim(16, 16))).toEqual([{ type: 0, flags: 0, sequence: 0, port: 0, payload: bytes() }]);
  });

  const lies: [string, Uint8Array][] = [
    ["length 15", claim(15, 16)],
    ["a length beyond the end", claim(17, 16)],
    ["bytes after the last message", claim(16, 20)],
  ];
  it.each(lies)("refuses %s", (_, datagram) => expect(() => decodeMessages(datagram)).toThrow(NetlinkError));
});

describe("decodeAcknowledgement", () => {
  const plain = { message: undefined, offset: undefined };

  it("reads the kernel's: well, refused, refused with words, a dump's end", () => {
    expect(decodeAcknowledgement(only(linkV0.answers[1]))).toEqual({ errno: 0, ...plain });
    expect(decodeAcknowledgement(only(linkAbsent.answers[0]))).toEqual({ errno: 19, ...plain });
    expect(decodeAcknowledgement(only(addressesV0.answers[1]))).toEqual({ errno: 0, ...plain });
    expect(decodeAcknowledgement(only(addressesAbsent.answers[0]))).toEqual({ errno: 19, ...plain });
    const tooLong = { errno: 34, message: "Attribute failed policy validation", offset: 32 };
    expect(decodeAcknowledgement(only(linkNameTooLong.answers[0]))).toEqual(tooLong);
  });

  const words = [9, 0, 1, 0, 0x4e, 0x6f, 0x21, 0x21, 0, 0, 0, 0];
  const header = (length: number) => [length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const errno = [0xea, 0xff, 0xff, 0xff];

  it("finds the words behind a request that was repeated whole, and behind none", () => {
    const refused = { errno: 22, message: "No!!", offset: undefined };
    const whole = bytes(...errno, ...header(20), 1, 2, 3, 4, ...words);
    const done = bytes(...errno, ...words);
    const answers = [{ type: NLMSG_ERROR, payload: whole } as const, { type: NLMSG_DONE, payload: done } as const];
    for (const each of answers)
      expect(decodeAcknowledgement({ ...each, flags: NLM_F_ACK_TLVS, sequence: 1 })).toEqual(refused);
  });

  const lies: [string, number, number, number[]][] = [
    ["an empty one", NLMSG_ERROR, 0, []],
    ["half an errno", NLMSG_DONE, 0, [1, 2, 3]],
    ["words without the request", NLMSG_ERROR, NLM_F_ACK_TLVS, [...errno]],
    ["half a header of the request", NLMSG_ERROR, NLM_F_ACK_TLVS | NLM_F_CAPPED, [...errno, 1, 2, 3]],
    ["a request of length 0", NLMSG_ERROR, NLM_F_ACK_TLVS, [...errno, ...header(0), ...words]],
    ["a request beyond the end", NLMSG_ERROR, NLM_F_ACK_TLVS, [...errno, ...header(200), ...words]],
    ["words cut off", NLMSG_DONE, NLM_F_ACK_TLVS, [...errno, ...words.slice(0, 6)]],
  ];
  it.each(lies)("refuses %s", (_, type, flags, payload) => {
    expect(() => decodeAcknowledgement({ type, flags, sequence: 1, payload: bytes(...payload) })).toThrow(NetlinkError);
  });
});

describe("decodeAttributes", () => {
  it.each<[string, Uint8Array, Attribute[]]>([
    ["nothing", bytes(), []],
    ["one that is empty", bytes(4, 0, 1, 0), [{ type: 1, flags: 0, value: bytes() }]],
    ["one with padding", bytes(5, 0, 1, 0, 9, 0, 0, 0), [{ type: 1, flags: 0, value: bytes(9) }]],
    ["a last one without padding", bytes(5, 0, 1, 0, 9), [{ type: 1, flags: 0, value: bytes(9) }]],
    ["a nested one", bytes(4, 0, 3, 0x80), [{ type: 3, flags: 0x8000, value: bytes() }]],
    ["one in network byte order", bytes(4, 0, 3, 0x40), [{ type: 3, flags: 0x4000, value: bytes() }]],
  ])("reads %s", (_, input, expected) => expect(decodeAttributes(input)).toEqual(expected));

  const lies: [string, Uint8Array, number][] = [
    ["half a header", bytes(4, 0, 1), 0],
    ["length 3", bytes(3, 0, 1, 0), 0],
    ["a length beyond the end", bytes(5, 0, 1, 0), 0],
    ["a second length that lies", bytes(4, 0, 1, 0, 8, 0, 1, 0), 4],
  ];
  it.each(lies)("refuses %s", (_, input, offset) => {
    const fault = expect.objectContaining({ name: "NetlinkError", offset });
    for (const wanted of [undefined, new Set<number>()])
      expect(() => decodeAttributes(input, 0, wanted)).toThrow(fault);
  });

  it("leaves out unwanted ones, whatever their flags", () => {
    const input = bytes(4, 0, 1, 0, 4, 0, 2, 0x80, 5, 0, 3, 0, 7, 0, 0, 0);
    expect(decodeAttributes(input, 0, new Set([2, 3])).map(({ type }) => type)).toEqual([2, 3]);
  });

  it("round trips the kernel's message, unknown attributes and all", () => {
    const fixed = 16 + 16;
    const datagram = linkV0.answers[0] ?? bytes();
    const attributes = decodeAttributes(datagram, fixed);
    expect(attributes.length).toBe(40);
    expect(encodeAttributes(attributes, fixed).subarray(fixed)).toEqual(datagram.subarray(fixed));
  });
});

describe("values", () => {
  it("the last of a type is found", () => {
    const list = decodeAttributes(bytes(5, 0, 1, 0, 7, 0, 0, 0, 5, 0, 1, 0, 8, 0, 0, 0));
    expect(findValue(list, 1)).toEqual(bytes(8));
    expect(findValue(list, 2)).toBeUndefined();
  });

  it("numbers of 32 bits are four bytes, exactly", () => {
    expect(decodeUint32(encodeUint32(0xfedcba98))).toBe(0xfedcba98);
    for (const length of [0, 3, 5, 8]) expect(() => decodeUint32(new Uint8Array(length))).toThrow(/want 4/);
  });

  it("texts end in their only NUL", () => {
    expect(decodeString(encodeString("eth0"))).toBe("eth0");
    expect(encodeString("é")).toEqual(bytes(0xc3, 0xa9, 0));
    for (const wrong of [bytes(), bytes(97), bytes(97, 0, 0), bytes(0, 97)])
      expect(() => decodeString(wrong)).toThrow(NetlinkError);
  });
});
