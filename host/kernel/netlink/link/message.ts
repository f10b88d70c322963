/**
 * Link messages: bytes ↔ values.
 *
 *      0        1     2      4       8       12       16
 *      ├ family ┼ pad ┼ type ┼ index ┼ flags ┼ change ┼ attributes …      (linux/rtnetlink.h, struct ifinfomsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
import { int32At, putUint16, putUint32, uint16At, uint32At } from "../numbers.ts";
import { RTM_NEWLINK } from "./constants.ts";

const FIXED_BYTES = 16;

export interface LinkMessage {
  /** ARPHRD_*; 0 in requests. */
  readonly deviceType: number;
  /** 0 in requests that name the link otherwise. */
  readonly index: number;
  /** IFF_* */
  readonly flags: number;
  /** Which of the flags a request changes. */
  readonly change: number;
  readonly attributes: readonly Attribute[];
}

export function encodeLink({ deviceType, index, flags, change, attributes }: LinkMessage): Uint8Array {
  const bytes = encodeAttributes(attributes, FIXED_BYTES);
  putUint16(bytes, 2, deviceType);
  putUint32(bytes, 4, index);
  putUint32(bytes, 8, flags);
  putUint32(bytes, 12, change);
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. With `wanted`, other attributes are left out. */
export function decodeLink({ type, payload }: Message, wanted?: ReadonlySet<number>): LinkMessage {
  if (type !== RTM_NEWLINK) throw malformed("link message", 4, `type ${type}`, `RTM_NEWLINK (${RTM_NEWLINK})`);
  if (payload.length < FIXED_BYTES) throw malformed("link message", 0, `${payload.length} bytes`, "16 or more");
  return {
    deviceType: uint16At(payload, 2),
    index: int32At(payload, 4),
    flags: uint32At(payload, 8),
    change: uint32At(payload, 12),
    attributes: decodeAttributes(payload, FIXED_BYTES, wanted),
  };
}
