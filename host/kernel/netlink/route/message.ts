/**
 * Route messages: bytes ↔ values.
 *
 *      0        1         2         3     4       5          6       7      8       12
 *      ├ family ┼ dst len ┼ src len ┼ tos ┼ table ┼ protocol ┼ scope ┼ type ┼ flags ┼ attributes …
 *      (linux/rtnetlink.h, struct rtmsg)
 */
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWROUTE } from "./constants.ts";

const CODEC = fixedPart({
  name: "route message",
  type: RTM_NEWROUTE,
  typeName: "RTM_NEWROUTE",
  bytes: 12,
  fields: {
    /** AF_* */
    family: [0, "uint8"],
    destinationLength: [1, "uint8"],
    sourceLength: [2, "uint8"],
    tos: [3, "uint8"],
    /** RT_TABLE_*; the attribute RTA_TABLE takes precedence. */
    table: [4, "uint8"],
    /** RTPROT_* */
    protocol: [5, "uint8"],
    /** RT_SCOPE_* */
    scope: [6, "uint8"],
    /** RTN_* */
    type: [7, "uint8"],
    /** RTM_F_*, RTNH_F_* */
    flags: [8, "uint32"],
  },
});

export type RouteMessage = ReturnType<typeof CODEC.decode>;

export const encodeRouteMessage = CODEC.encode;

export const decodeRouteMessage = CODEC.decode;
