/**
 * Neighbour messages: bytes ↔ values.
 *
 *      0        1     4       8       10      11     12
 *      ├ family ┼ pad ┼ index ┼ state ┼ flags ┼ type ┼ attributes …      (linux/neighbour.h, struct ndmsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
import { int32At, putUint16, putUint32, uint8At, uint16At } from "../numbers.ts";
import { RTM_NEWNEIGH } from "./constants.ts";

const FIXED_BYTES = 12;

export interface NeighbourMessage {
  /** AF_* */
  readonly family: number;
  /** Of the link. */
  readonly index: number;
  /** NUD_* */
  readonly state: number;
  /** NTF_* */
  readonly flags: number;
  /** RTN_* of the address; 0 in requests. */
  readonly type: number;
  readonly attributes: readonly Attribute[];
}

export function encodeNeighbourMessage(message: NeighbourMessage): Uint8Array {
  const { family, index, state, flags, type, attributes } = message;
  const bytes = encodeAttributes(attributes, FIXED_BYTES);
  bytes[0] = family;
  putUint32(bytes, 4, index);
  putUint16(bytes, 8, state);
  bytes[10] = flags;
  bytes[11] = type;
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. */
export function decodeNeighbourMessage({ type, payload }: Message): NeighbourMessage {
  if (type !== RTM_NEWNEIGH) throw malformed("neighbour message", 4, `type ${type}`, `RTM_NEWNEIGH (${RTM_NEWNEIGH})`);
  if (payload.length < FIXED_BYTES) throw malformed("neighbour message", 0, `${payload.length} bytes`, "12 or more");
  return {
    family: uint8At(payload, 0),
    index: int32At(payload, 4),
    state: uint16At(payload, 8),
    flags: uint8At(payload, 10),
    type: uint8At(payload, 11),
    attributes: decodeAttributes(payload, FIXED_BYTES),
  };
}
