/**
 * Netconf messages (settings of IPv4 or IPv6): bytes ↔ values.
 *
 *      0        1     4
 *      ├ family ┼ pad ┼ attributes …      (linux/netconf.h, struct netconfmsg)
 */
import type { Attribute } from "../attribute.ts";
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWNETCONF } from "./constants.ts";

export interface NetconfMessage {
  /** AF_* */
  readonly family: number;
  readonly attributes: readonly Attribute[];
}

const CODEC = fixedPart<NetconfMessage>({
  name: "netconf message",
  type: RTM_NEWNETCONF,
  typeName: "RTM_NEWNETCONF",
  bytes: 4,
  fields: { family: [0, "uint8"] },
});

export const encodeNetconf = CODEC.encode;

export const decodeNetconf = CODEC.decode;
