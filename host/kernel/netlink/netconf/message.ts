/**
 * Netconf messages (settings of IPv4 or IPv6): bytes ↔ values.
 *
 *      0        1     4
 *      ├ family ┼ pad ┼ attributes …      (linux/netconf.h, struct netconfmsg)
 */
import { fixedPart } from "../fixed-part.ts";
import { RTM_NEWNETCONF } from "./constants.ts";

const CODEC = fixedPart({
  name: "netconf message",
  type: RTM_NEWNETCONF,
  typeName: "RTM_NEWNETCONF",
  bytes: 4,
  fields: {
    /** AF_* */
    family: [0, "uint8"],
  },
});

export type NetconfMessage = ReturnType<typeof CODEC.decode>;

export const encodeNetconf = CODEC.encode;

export const decodeNetconf = CODEC.decode;
