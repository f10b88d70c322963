/**
 * Netconf messages (settings of IPv4 or IPv6): bytes ↔ values.
 *
 *      0        1     4
 *      ├ family ┼ pad ┼ attributes …      (linux/netconf.h, struct netconfmsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { type FixedPart, type Message, requireFixedPart } from "../message.ts";
import { RTM_NEWNETCONF } from "./constants.ts";

/** The fixed part is one byte, padded to four. */
const FIXED: FixedPart = { name: "netconf message", type: RTM_NEWNETCONF, typeName: "RTM_NEWNETCONF", bytes: 4 };

export interface NetconfMessage {
  /** AF_* */
  readonly family: number;
  readonly attributes: readonly Attribute[];
}

export function encodeNetconf({ family, attributes }: NetconfMessage): Uint8Array {
  const bytes = encodeAttributes(attributes, FIXED.bytes);
  bytes[0] = family;
  return bytes;
}

/** Throws NetlinkError for a message of another type, and for false lengths. */
export function decodeNetconf(message: Message): NetconfMessage {
  const { payload } = message;
  requireFixedPart(message, FIXED);
  return { family: payload[0] ?? 0, attributes: decodeAttributes(payload, FIXED.bytes) };
}
