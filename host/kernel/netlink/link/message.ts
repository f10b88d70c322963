/**
 * Link messages: bytes ↔ values.
 *
 *      0        1     2      4       8       12       16
 *      ├ family ┼ pad ┼ type ┼ index ┼ flags ┼ change ┼ attributes …      (linux/rtnetlink.h, struct ifinfomsg)
 */
import type { Attribute } from "../attribute.ts";
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWLINK } from "./constants.ts";

export interface LinkMessage {
  /** ARPHRD_*; 0 in requests. */
  readonly deviceType: number;
  /** 0 in requests that identify the link by name. */
  readonly index: number;
  /** IFF_* */
  readonly flags: number;
  /** Mask of the flags that a request changes. */
  readonly change: number;
  readonly attributes: readonly Attribute[];
}

const CODEC = fixedPart<LinkMessage>({
  name: "link message",
  type: RTM_NEWLINK,
  typeName: "RTM_NEWLINK",
  bytes: 16,
  fields: { deviceType: [2, "uint16"], index: [4, "int32"], flags: [8, "uint32"], change: [12, "uint32"] },
});

export const encodeLink = CODEC.encode;

export const decodeLink = CODEC.decodeWanted;
