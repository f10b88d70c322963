/**
 * Messages about settings of IPv4 or IPv6: bytes ↔ values.
 *
 *      0        1     4
 *      ├ family ┼ pad ┼ attributes …      (linux/netconf.h, struct netconfmsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
import { RTM_NEWNETCONF } from "./constants.ts";

/** The one byte of the fixed part, and the padding behind it. */
const FIXED_BYTES = 4;

export interface NetconfMessage {
  /** AF_* */
  readonly family: number;
  readonly attributes: readonly Attribute[];
}

export function encodeNetconf({ family, attributes }: NetconfMessage): Uint8Array {
  const bytes = encodeAttributes(attributes, FIXED_BYTES);
  bytes[0] = family;
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. */
export function decodeNetconf({ type, payload }: Message): NetconfMessage {
  if (type !== RTM_NEWNETCONF) {
    throw malformed("netconf message", 4, `type ${type}`, `RTM_NEWNETCONF (${RTM_NEWNETCONF})`);
  }
  if (payload.length < FIXED_BYTES) throw malformed("netconf message", 0, `${payload.length} bytes`, "4 or more");
  return { family: payload[0] ?? 0, attributes: decodeAttributes(payload, FIXED_BYTES) };
}
