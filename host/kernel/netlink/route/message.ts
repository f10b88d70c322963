/**
 * Route messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5          6       7      8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ protocol ┼ scope ┼ type ┼ flags ┼ attributes …
 *      (linux/rtnetlink.h, struct rtmsg)
 */
import type { Attribute } from "../attribute.ts";
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWROUTE } from "./constants.ts";

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

const CODEC = fixedPart<RouteMessage>({
  name: "route message",
  type: RTM_NEWROUTE,
  typeName: "RTM_NEWROUTE",
  bytes: 12,
  fields: {
    family: [0, "uint8"],
    destinationLength: [1, "uint8"],
    sourceLength: [2, "uint8"],
    tos: [3, "uint8"],
    table: [4, "uint8"],
    protocol: [5, "uint8"],
    scope: [6, "uint8"],
    type: [7, "uint8"],
    flags: [8, "uint32"],
  },
});

export const encodeRouteMessage = CODEC.encode;

export const decodeRouteMessage = CODEC.decode;
