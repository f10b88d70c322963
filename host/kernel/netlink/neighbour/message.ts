/**
 * Neighbour messages: bytes ↔ values.
 *
 *      0        1     4       8       10      11     12
 *      ├ family ┼ pad ┼ index ┼ state ┼ flags ┼ type ┼ attributes …      (linux/neighbour.h, struct ndmsg)
 */
import type { Attribute } from "../attribute.ts";
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWNEIGH } from "./constants.ts";

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

const CODEC = fixedPart<NeighbourMessage>({
  name: "neighbour message",
  type: RTM_NEWNEIGH,
  typeName: "RTM_NEWNEIGH",
  bytes: 12,
  fields: {
    family: [0, "uint8"],
    index: [4, "int32"],
    state: [8, "uint16"],
    flags: [10, "uint8"],
    type: [11, "uint8"],
  },
});

export const encodeNeighbourMessage = CODEC.encode;

export const decodeNeighbourMessage = CODEC.decode;
