/**
 * nf_tables messages: bytes ↔ values. Their numbers are in network byte order, and their lists are nested.
 *
 *      0        1         2          4
 *      ├ family ┼ version ┼ resource ┼ attributes …      (linux/netfilter/nfnetlink.h, struct nfgenmsg)
 */
import {
  type Attribute,
  attribute,
  decodeAttributes,
  decodeUint32,
  encodeAttributes,
  encodeUint32,
  nest,
  viewOf,
} from "../attribute.ts";
import { NLA_F_NESTED } from "../constants.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";

const FIXED_BYTES = 4;

export interface NftMessage {
  /** NFPROTO_* */
  readonly family: number;
  /** The subsystem in the first and last message of a batch; otherwise 0 in requests, the generation in answers. */
  readonly resource: number;
  readonly attributes: readonly Attribute[];
}

export function encodeNft({ family, resource, attributes }: NftMessage): Uint8Array {
  const bytes = encodeAttributes(attributes, FIXED_BYTES);
  bytes[0] = family;
  viewOf(bytes).setUint16(2, resource);
  return bytes;
}

/** Throws NetlinkError for a message of another type than `wanted` (NFT_MSG_*), and for false lengths. */
export function decodeNft({ type, payload }: Message, wanted: number): NftMessage {
  if (type !== wanted) throw malformed("nf_tables message", 4, `type ${type}`, `${wanted}`);
  if (payload.length < FIXED_BYTES) throw malformed("nf_tables message", 0, `${payload.length} bytes`, "4 or more");
  const view = viewOf(payload);
  const attributes = decodeAttributes(payload, FIXED_BYTES);
  return { family: view.getUint8(0), resource: view.getUint16(2), attributes };
}

export function nested(type: number, attributes: readonly Attribute[]): Attribute {
  return nest(type, attributes, NLA_F_NESTED);
}

/** Encodes a number in network byte order, also a negative one (priorities). */
export function numberAttribute(type: number, value: number): Attribute {
  return attribute(type, encodeUint32(value >>> 0).reverse());
}

/** Unsigned. */
export function decodeNumber(value: Uint8Array): number {
  return decodeUint32(value.slice().reverse());
}

/** Decodes a name up to its NUL; the padding of a value of fixed length is ignored. */
export function decodeName(value: Uint8Array): string {
  const end = value.indexOf(0);
  return new TextDecoder().decode(end < 0 ? value : value.subarray(0, end));
}
