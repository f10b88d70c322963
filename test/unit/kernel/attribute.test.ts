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
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { addressesV0, linkV0 } from "./vectors.ts";

const bytes = (...values: number[]) => Uint8Array.from(values);

describe("decodeAttributes", () => {
  const rows: [string, Uint8Array, Attribute[]][] = [
    ["nothing", bytes(), []],
    ["one that is empty", bytes(4, 0, 1, 0), [{ type: 1, flags: 0, value: bytes() }]],
    ["one with padding", bytes(5, 0, 1, 0, 9, 0, 0, 0), [{ type: 1, flags: 0, value: bytes(9) }]],
    ["a last one without padding", bytes(5, 0, 1, 0, 9), [{ type: 1, flags: 0, value: bytes(9) }]],
    ["a nested one", bytes(4, 0, 3, 0x80), [{ type: 3, flags: 0x8000, value: bytes() }]],
    ["one in network byte order", bytes(4, 0, 3, 0x40), [{ type: 3, flags: 0x4000, value: bytes() }]],
  ];
  it.each(rows)("reads %s", (_, input, expected) => {
    expect(decodeAttributes(input)).toEqual(expected);
  });

  const lies: [string, Uint8Array, number][] = [
    ["one byte", bytes(1), 0],
    ["half a header", bytes(4, 0, 1), 0],
    ["length 0", bytes(0, 0, 1, 0), 0],
    ["length 3", bytes(3, 0, 1, 0), 0],
    ["a length beyond the end", bytes(5, 0, 1, 0), 0],
    ["the greatest length", bytes(255, 255, 1, 0), 0],
    ["a second header cut off", bytes(4, 0, 1, 0, 8, 0), 4],
    ["a second length that lies", bytes(4, 0, 1, 0, 8, 0, 1, 0), 4],
  ];
  it.each(lies)("refuses %s", (_, input, offset) => {
    expect(() => decodeAttributes(input)).toThrow(expect.objectContaining({ name: "NetlinkError", offset }));
    const nothing = new Set<number>();
    expect(() => decodeAttributes(input, 0, nothing)).toThrow(
      expect.objectContaining({ name: "NetlinkError", offset }),
    );
  });

  it("leaves out what is not wanted, whatever its flags", () => {
    const input = bytes(4, 0, 1, 0, 4, 0, 2, 0x80, 5, 0, 3, 0, 7, 0, 0, 0);
    expect(decodeAttributes(input, 0, new Set([2, 3])).map(({ type }) => type)).toEqual([2, 3]);
  });

  it("round trips what the kernel sent, unknown attributes and all", () => {
    const fixed = 16 + 16;
    const datagram = linkV0.answers[0] ?? bytes();
    const attributes = decodeAttributes(datagram, fixed);
    expect(attributes.length).toBe(40);
    expect(encodeAttributes(attributes, fixed).subarray(fixed)).toEqual(datagram.subarray(fixed));
  });

  it("never reads outside: every cut and every changed byte decodes or throws NetlinkError", () => {
    const original = (addressesV0.answers[0] ?? bytes()).subarray(16 + 8, 76);
    const inputs = Array.from({ length: original.length }, (_, end) => original.slice(0, end));
    for (let at = 0; at < original.length; at++) {
      for (let value = 0; value < 256; value++) inputs.push(original.with(at, value));
    }
    let refused = 0;
    for (const input of inputs) {
      try {
        for (const { value } of decodeAttributes(input)) expect(value.byteLength).toBeLessThanOrEqual(input.length - 4);
      } catch (error) {
        expect(error).toBeInstanceOf(NetlinkError);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(1_000);
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
    for (const wrong of [bytes(), bytes(97), bytes(97, 0, 0), bytes(0, 97)]) {
      expect(() => decodeString(wrong)).toThrow(NetlinkError);
    }
  });
});
