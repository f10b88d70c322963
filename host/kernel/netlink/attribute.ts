/**
 * Attributes: the type-length-value lists behind every message's fixed part, and the plain values in them.
 *
 *      0        2      4                length
 *      ├ length ┼ type ┼ value …        ┤ padding to a multiple of 4      (linux/netlink.h, struct nlattr)
 */
import { invariant } from "../../lib/invariant.ts";
import { malformed } from "./error.ts";
import { putUint16, putUint32, uint8At, uint16At, uint32At } from "./numbers.ts";

const HEADER_BYTES = 4;
/** NLA_F_NESTED and NLA_F_NET_BYTEORDER, kept apart from the type so that unknown attributes survive a round trip. */
const FLAG_BITS = 0xc000;

export interface Attribute {
  /** Without its flags. */
  readonly type: number;
  readonly flags: number;
  readonly value: Uint8Array;
}

/** Returns the next multiple of 4. */
export function align(length: number): number {
  return (length + 3) & ~3;
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Decodes bytes[start, end) as a list. The values are views into `bytes`. Throws NetlinkError for a false length. With
 * `wanted`, attributes of other types are left out: most of a long dump is unused, and each view costs.
 */
export function decodeAttributes(bytes: Uint8Array, start = 0, wanted?: ReadonlySet<number>): Attribute[] {
  const attributes: Attribute[] = [];
  for (let at = start; at < bytes.length; ) {
    const left = bytes.length - at;
    if (left < HEADER_BYTES) throw malformed("attribute", at, `${left} bytes`, "a header of 4");
    const length = uint16At(bytes, at);
    if (length < HEADER_BYTES || length > left) throw malformed("attribute", at, `length ${length}`, `4 to ${left}`);
    const word = uint16At(bytes, at + 2);
    const type = word & ~FLAG_BITS;
    if (wanted === undefined || wanted.has(type)) {
      attributes.push({ type, flags: word & FLAG_BITS, value: bytes.subarray(at + HEADER_BYTES, at + length) });
    }
    at += align(length);
  }
  return attributes;
}

/** Encodes the list and leaves `start` bytes free in front for the fixed part. */
export function encodeAttributes(attributes: readonly Attribute[], start = 0): Uint8Array {
  const size = attributes.reduce((total, { value }) => total + align(HEADER_BYTES + value.length), start);
  const bytes = new Uint8Array(size);
  let at = start;
  for (const { type, flags, value } of attributes) {
    putUint16(bytes, at, HEADER_BYTES + value.length);
    putUint16(bytes, at + 2, type | flags);
    bytes.set(value, at + HEADER_BYTES);
    at += align(HEADER_BYTES + value.length);
  }
  return bytes;
}

/** Returns the value of the last attribute of the type, as the kernel's parsers do. */
export function findValue(attributes: readonly Attribute[], type: number): Uint8Array | undefined {
  // a loop, not findLast: a dump of a node's links calls this thousands of times
  for (let at = attributes.length - 1; at >= 0; at--) {
    const one = attributes[at];
    if (one?.type === type) return one.value;
  }
  return undefined;
}

export function attribute(type: number, value: Uint8Array): Attribute {
  return { type, flags: 0, value };
}

export function encodeUint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  putUint32(bytes, 0, value);
  return bytes;
}

export function decodeUint32(value: Uint8Array): number {
  if (value.length !== 4) throw malformed("32-bit attribute", 0, `${value.length} bytes`, "4");
  return uint32At(value, 0);
}

export function decodeInt32(value: Uint8Array): number {
  return decodeUint32(value) | 0;
}

export function encodeUint16(value: number): Uint8Array {
  const bytes = new Uint8Array(2);
  putUint16(bytes, 0, value);
  return bytes;
}

export function decodeUint16(value: Uint8Array): number {
  if (value.length !== 2) throw malformed("16-bit attribute", 0, `${value.length} bytes`, "2");
  return uint16At(value, 0);
}

export function decodeUint8(value: Uint8Array): number {
  if (value.length !== 1) throw malformed("8-bit attribute", 0, `${value.length} bytes`, "1");
  return uint8At(value, 0);
}

/** Returns an attribute whose value is a list of attributes. */
export function nest(type: number, attributes: readonly Attribute[], flags = 0): Attribute {
  return { type, flags, value: encodeAttributes(attributes) };
}

export function present(attributes: readonly (Attribute | undefined)[]): Attribute[] {
  return attributes.filter((one) => one !== undefined);
}

/** Returns the attribute, or undefined if there is no value. */
export function optional<T>(
  type: number,
  value: T | undefined,
  encode: (value: T) => Uint8Array,
): Attribute | undefined {
  return value === undefined ? undefined : attribute(type, encode(value));
}

/** Returns the decoded value of the type's last attribute, undefined without one. Throws the errors of `decode`. */
export function readValue<T>(
  attributes: readonly Attribute[],
  type: number,
  decode: (value: Uint8Array) => T,
): T | undefined {
  const value = findValue(attributes, type);
  return value === undefined ? undefined : decode(value);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Returns the text as UTF-8, without a NUL. */
export const encodeText = (text: string): Uint8Array => encoder.encode(text);

/** Returns the text with the final NUL that the kernel requires. A NUL inside would truncate it, so it is a bug. */
export function encodeString(text: string): Uint8Array {
  invariant(!text.includes("\0"), `Text ${JSON.stringify(text)} for the kernel has a NUL inside`);
  return encodeText(`${text}\0`);
}

/** Returns the text without its NUL, which must be the last byte and the only NUL. */
export function decodeString(value: Uint8Array): string {
  const end = value.indexOf(0);
  if (end < 0 || end !== value.length - 1)
    throw malformed("text attribute", 0, `a NUL at ${end}`, `one at ${value.length - 1}`);
  return decoder.decode(value.subarray(0, end));
}
