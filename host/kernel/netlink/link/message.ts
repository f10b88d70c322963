/**
 * Link messages: bytes ↔ values.
 *
 *      0        1     2      4       8       12       16
 *      ├ family ┼ pad ┼ type ┼ index ┼ flags ┼ change ┼ attributes …      (linux/rtnetlink.h, struct ifinfomsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { type FixedPart, type Message, requireFixedPart } from "../message.ts";
import { int32At, putUint16, putUint32, uint16At, uint32At } from "../numbers.ts";
import { RTM_NEWLINK } from "./constants.ts";

const FIXED: FixedPart = { name: "link message", type: RTM_NEWLINK, typeName: "RTM_NEWLINK", bytes: 16 };

export interface LinkMessage {
  /** ARPHRD_*; 0 in requests. */
  readonly deviceType: number;
  /** 0 in requests that identify the link by name. */
  readonly index: number;
  /** IFF_* */
  readonly flags: number;
  /** Mask of the flags that a request changes. */
  readonly change: number;
  readonly attributes: readonly Attribute[];
}

/** Fields that are left out are 0. */
export function encodeLink(message: Partial<LinkMessage>): Uint8Array {
  const { deviceType = 0, index = 0, flags = 0, change = 0, attributes = [] } = message;
  const bytes = encodeAttributes(attributes, FIXED.bytes);
  putUint16(bytes, 2, deviceType);
  putUint32(bytes, 4, index);
  putUint32(bytes, 8, flags);
  putUint32(bytes, 12, change);
  return bytes;
}

/**
 * Throws NetlinkError for a message of another type, and for false lengths. With `wanted`, attributes of other types are left
 * out.
 */
export function decodeLink(message: Message, wanted?: ReadonlySet<number>): LinkMessage {
  const { payload } = message;
  requireFixedPart(message, FIXED);
  return {
    deviceType: uint16At(payload, 2),
    index: int32At(payload, 4),
    flags: uint32At(payload, 8),
    change: uint32At(payload, 12),
    attributes: decodeAttributes(payload, FIXED.bytes, wanted),
  };
}
