/**
 * Link messages: bytes ↔ values.
 *
 *      0        1     2      4       8       12       16
 *      ├ family ┼ pad ┼ type ┼ index ┼ flags ┼ change ┼ attributes …      (linux/rtnetlink.h, struct ifinfomsg)
 */
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWLINK } from "./constants.ts";

const CODEC = fixedPart({
  name: "link message",
  type: RTM_NEWLINK,
  typeName: "RTM_NEWLINK",
  bytes: 16,
  fields: {
    /** ARPHRD_*; 0 in requests. */
    deviceType: [2, "uint16"],
    /** 0 in requests that identify the link by name. */
    index: [4, "int32"],
    /** IFF_* */
    flags: [8, "uint32"],
    /** Mask of the flags that a request changes. */
    change: [12, "uint32"],
  },
});

export type LinkMessage = ReturnType<typeof CODEC.decode>;

export const encodeLink = CODEC.encode;

export const decodeLink = CODEC.decodeWanted;
