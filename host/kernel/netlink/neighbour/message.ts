/**
 * Neighbour messages: bytes ↔ values.
 *
 *      0        1     4       8       10      11     12
 *      ├ family ┼ pad ┼ index ┼ state ┼ flags ┼ type ┼ attributes …      (linux/neighbour.h, struct ndmsg)
 */
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWNEIGH } from "./constants.ts";

const CODEC = fixedPart({
  name: "neighbour message",
  type: RTM_NEWNEIGH,
  typeName: "RTM_NEWNEIGH",
  bytes: 12,
  fields: {
    /** AF_* */
    family: [0, "uint8"],
    /** Index of the link. */
    index: [4, "int32"],
    /** NUD_* */
    state: [8, "uint16"],
    /** NTF_* */
    flags: [10, "uint8"],
    /** RTN_* of the address; 0 in requests. */
    type: [11, "uint8"],
  },
});

export type NeighbourMessage = ReturnType<typeof CODEC.decode>;

export const encodeNeighbourMessage = CODEC.encode;

export const decodeNeighbourMessage = CODEC.decode;
