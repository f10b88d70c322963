/**
 * Neighbour messages: bytes ↔ values.
 *
 *      0        1     4       8       10      11     12
 *      ├ family ┼ pad ┼ index ┼ state ┼ flags ┼ type ┼ attributes …      (linux/neighbour.h, struct ndmsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { type FixedPart, type Message, type MessageSpec, requireFixedPart } from "../message.ts";
import { int32At, putUint16, putUint32, uint8At, uint16At } from "../numbers.ts";
import { RTM_NEWNEIGH } from "./constants.ts";

const FIXED: FixedPart = { name: "neighbour message", type: RTM_NEWNEIGH, typeName: "RTM_NEWNEIGH", bytes: 12 };

export interface NeighbourMessage {
  /** AF_* */
  readonly family: number;
  /** Index of the link. */
  readonly index: number;
  /** NUD_* */
  readonly state: number;
  /** NTF_* */
  readonly flags: number;
  /** RTN_* of the address; 0 in requests. */
  readonly type: number;
  readonly attributes: readonly Attribute[];
}

/** Fields that are left out are 0. */
export function encodeNeighbourMessage(message: MessageSpec<NeighbourMessage>): Uint8Array {
  const { family, index = 0, state = 0, flags = 0, type = 0, attributes } = message;
  const bytes = encodeAttributes(attributes, FIXED.bytes);
  bytes[0] = family;
  putUint32(bytes, 4, index);
  putUint16(bytes, 8, state);
  bytes[10] = flags;
  bytes[11] = type;
  return bytes;
}

/** Throws NetlinkError for a message of another type, and for false lengths. */
export function decodeNeighbourMessage(message: Message): NeighbourMessage {
  const { payload } = message;
  requireFixedPart(message, FIXED);
  return {
    family: uint8At(payload, 0),
    index: int32At(payload, 4),
    state: uint16At(payload, 8),
    flags: uint8At(payload, 10),
    type: uint8At(payload, 11),
    attributes: decodeAttributes(payload, FIXED.bytes),
  };
}
