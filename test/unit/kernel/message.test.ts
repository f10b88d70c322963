import { describe, expect, it } from "vitest";
import {
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_DUMP_FILTERED,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
} from "../../../host/kernel/netlink/constants.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeAcknowledgement, decodeMessages, encodeMessage } from "../../../host/kernel/netlink/message.ts";
import { addressesAbsent, addressesV0, linkAbsent, linkNameTooLong, linkV0 } from "./vectors.ts";

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
    expect(messages.map(({ type, flags, sequence, payload }) => [type, flags, sequence, payload.length])).toEqual([
      [20, NLM_F_MULTI | NLM_F_DUMP_FILTERED, 4, 60],
      [20, NLM_F_MULTI | NLM_F_DUMP_FILTERED, 4, 60],
      [20, NLM_F_MULTI | NLM_F_DUMP_FILTERED, 4, 56],
      [20, NLM_F_MULTI | NLM_F_DUMP_FILTERED, 4, 64],
    ]);
  });

  it("reads none from nothing, and a header alone as an empty message", () => {
    expect(decodeMessages(bytes())).toEqual([]);
    expect(decodeMessages(claim(16, 16))).toEqual([{ type: 0, flags: 0, sequence: 0, payload: bytes() }]);
  });

  const lies: [string, Uint8Array][] = [
    ["one byte", bytes(1)],
    ["half a header", claim(15, 15)],
    ["length 0", claim(0, 16)],
    ["length 15", claim(15, 16)],
    ["a length beyond the end", claim(17, 16)],
    ["the greatest length", claim(0xffff_ffff, 64)],
    ["bytes after the last message", claim(16, 20)],
  ];
  it.each(lies)("refuses %s", (_, datagram) => {
    expect(() => decodeMessages(datagram)).toThrow(NetlinkError);
  });

  it("round trips what was sent to the kernel", () => {
    for (const { request } of [linkV0, linkAbsent, linkNameTooLong, addressesV0]) {
      expect(encodeMessage(only(request))).toEqual(request);
    }
  });
});

describe("decodeAcknowledgement", () => {
  const plain = { message: undefined, offset: undefined };

  it("reads the kernel's: well, refused, refused with words, a dump's end", () => {
    expect(decodeAcknowledgement(only(linkV0.answers[1]))).toEqual({ errno: 0, ...plain });
    expect(decodeAcknowledgement(only(linkAbsent.answers[0]))).toEqual({ errno: 19, ...plain });
    expect(decodeAcknowledgement(only(addressesV0.answers[1]))).toEqual({ errno: 0, ...plain });
    expect(decodeAcknowledgement(only(addressesAbsent.answers[0]))).toEqual({ errno: 19, ...plain });
    expect(decodeAcknowledgement(only(linkNameTooLong.answers[0]))).toEqual({
      errno: 34,
      message: "Attribute failed policy validation",
      offset: 32,
    });
  });

  const words = [9, 0, 1, 0, 0x4e, 0x6f, 0x21, 0x21, 0, 0, 0, 0];
  const header = (length: number) => [length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const errno = [0xea, 0xff, 0xff, 0xff];

  it("finds the words behind a request that was repeated whole, and behind none", () => {
    const refused = { errno: 22, message: "No!!", offset: undefined };
    const whole = bytes(...errno, ...header(20), 1, 2, 3, 4, ...words);
    expect(decodeAcknowledgement({ type: NLMSG_ERROR, flags: NLM_F_ACK_TLVS, sequence: 1, payload: whole })).toEqual(
      refused,
    );
    const done = bytes(...errno, ...words);
    expect(decodeAcknowledgement({ type: NLMSG_DONE, flags: NLM_F_ACK_TLVS, sequence: 1, payload: done })).toEqual(
      refused,
    );
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
