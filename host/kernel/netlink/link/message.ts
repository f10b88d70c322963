/**
 * Link messages: bytes ↔ values.
 *
 *      0        1     2      4       8       12       16
 *      ├ family ┼ pad ┼ type ┼ index ┼ flags ┼ change ┼ attributes …      (linux/rtnetlink.h, struct ifinfomsg)
 *
 * Effects: none.
 */
import { type Attribute, decodeAttributes, encodeAttributes, viewOf } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
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
  const view = viewOf(bytes);
  view.setUint16(2, deviceType, true);
  view.setInt32(4, index, true);
  view.setUint32(8, flags, true);
  view.setUint32(12, change, true);
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. With `wanted`, other attributes are left out. */
export function decodeLink({ type, payload }: Message, wanted?: ReadonlySet<number>): LinkMessage {
  if (type !== RTM_NEWLINK) throw malformed("link message", 4, `type ${type}`, `RTM_NEWLINK (${RTM_NEWLINK})`);
  if (payload.length < FIXED_BYTES) throw malformed("link message", 0, `${payload.length} bytes`, "16 or more");
  const view = viewOf(payload);
  return {
    deviceType: view.getUint16(2, true),
    index: view.getInt32(4, true),
    flags: view.getUint32(8, true),
    change: view.getUint32(12, true),
    attributes: decodeAttributes(payload, FIXED_BYTES, wanted),
  };
}
