/**
 * Route messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5          6       7      8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ protocol ┼ scope ┼ type ┼ flags ┼ attributes …   (linux/rtnetlink.h, struct rtmsg)
 *
 * Effects: none.
 */
import { type Attribute, decodeAttributes, encodeAttributes, viewOf } from "../attribute.ts";
import { malformed } from "../error.ts";
import type { Message } from "../message.ts";
import { RTM_NEWROUTE } from "./constants.ts";

const FIXED_BYTES = 12;

export interface RouteMessage {
  /** AF_* */
  readonly family: number;
  readonly destinationLength: number;
  readonly sourceLength: number;
  readonly tos: number;
  /** RT_TABLE_*; the attribute RTA_TABLE goes before it. */
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

export function encodeRouteMessage(message: RouteMessage): Uint8Array {
  const { family, destinationLength, sourceLength, tos, table, protocol, scope, type, flags, attributes } = message;
  const bytes = encodeAttributes(attributes, FIXED_BYTES);
  bytes.set([family, destinationLength, sourceLength, tos, table, protocol, scope, type]);
  viewOf(bytes).setUint32(8, flags, true);
  return bytes;
}

/** Throws for a message of another type and for lengths that lie. */
export function decodeRouteMessage({ type, payload }: Message): RouteMessage {
  if (type !== RTM_NEWROUTE) throw malformed("route message", 4, `type ${type}`, `RTM_NEWROUTE (${RTM_NEWROUTE})`);
  if (payload.length < FIXED_BYTES) throw malformed("route message", 0, `${payload.length} bytes`, "12 or more");
  const view = viewOf(payload);
  return {
    family: view.getUint8(0),
    destinationLength: view.getUint8(1),
    sourceLength: view.getUint8(2),
    tos: view.getUint8(3),
    table: view.getUint8(4),
    protocol: view.getUint8(5),
    scope: view.getUint8(6),
    type: view.getUint8(7),
    flags: view.getUint32(8, true),
    attributes: decodeAttributes(payload, FIXED_BYTES),
  };
}
