/**
 * Route messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5          6       7      8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ protocol ┼ scope ┼ type ┼ flags ┼ attributes …   (linux/rtnetlink.h, struct rtmsg)
 */
import { type Attribute, decodeAttributes, encodeAttributes } from "../attribute.ts";
import { type FixedPart, type Message, type MessageSpec, requireFixedPart } from "../message.ts";
import { putUint32, uint8At, uint32At } from "../numbers.ts";
import { RTM_NEWROUTE } from "./constants.ts";

const FIXED: FixedPart = { name: "route message", type: RTM_NEWROUTE, typeName: "RTM_NEWROUTE", bytes: 12 };

export interface RouteMessage {
  /** AF_* */
  readonly family: number;
  readonly destinationLength: number;
  readonly sourceLength: number;
  readonly tos: number;
  /** RT_TABLE_*; the attribute RTA_TABLE takes precedence. */
  readonly table: number;
  /** RTPROT_* */
  readonly protocol: number;
  /** RT_SCOPE_* */
  readonly scope: number;
  /** RTN_* */
  readonly type: number;
  /** RTM_F_*, RTNH_F_* */
  readonly flags: number;
  readonly attributes: readonly Attribute[];
}

/** Fields that are left out are 0. */
export function encodeRouteMessage(message: MessageSpec<RouteMessage>): Uint8Array {
  const { family, destinationLength = 0, sourceLength = 0, tos = 0, table = 0 } = message;
  const { protocol = 0, scope = 0, type = 0, flags = 0, attributes } = message;
  const bytes = encodeAttributes(attributes, FIXED.bytes);
  bytes.set([family, destinationLength, sourceLength, tos, table, protocol, scope, type]);
  putUint32(bytes, 8, flags);
  return bytes;
}

/** Throws NetlinkError for a message of another type, and for false lengths. */
export function decodeRouteMessage(message: Message): RouteMessage {
  const { payload } = message;
  requireFixedPart(message, FIXED);
  return {
    family: uint8At(payload, 0),
    destinationLength: uint8At(payload, 1),
    sourceLength: uint8At(payload, 2),
    tos: uint8At(payload, 3),
    table: uint8At(payload, 4),
    protocol: uint8At(payload, 5),
    scope: uint8At(payload, 6),
    type: uint8At(payload, 7),
    flags: uint32At(payload, 8),
    attributes: decodeAttributes(payload, FIXED.bytes),
  };
}
