/**
 * Neighbour messages: bytes ↔ values.
 *
 *      0        1     4       8       10      11     12
 *      ├ family ┼ pad ┼ index ┼ state ┼ flags ┼ type ┼ attributes …      (linux/neighbour.h, struct ndmsg)
 *
 * Effects: none.
 */
import { type Attribute, decodeAttributes, encodeAttributes, viewOf } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
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
  const view = viewOf(bytes);
  view.setUint8(0, family);
  view.setInt32(4, index, true);
  view.setUint16(8, state, true);
  view.setUint8(10, flags);
  view.setUint8(11, type);
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. */
export function decodeNeighbourMessage({ type, payload }: Message): NeighbourMessage {
  if (type !== RTM_NEWNEIGH) throw malformed("neighbour message", 4, `type ${type}`, `RTM_NEWNEIGH (${RTM_NEWNEIGH})`);
  if (payload.length < FIXED_BYTES) throw malformed("neighbour message", 0, `${payload.length} bytes`, "12 or more");
  const view = viewOf(payload);
  return {
    family: view.getUint8(0),
    index: view.getInt32(4, true),
    state: view.getUint16(8, true),
    flags: view.getUint8(10),
    type: view.getUint8(11),
    attributes: decodeAttributes(payload, FIXED_BYTES),
  };
}
