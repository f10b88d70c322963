/**
 * Address messages: bytes ↔ values.
 *
 *      0        1               2       3       4       8
 *      ├ family ┼ prefix length ┼ flags ┼ scope ┼ index ┼ attributes …      (linux/if_addr.h, struct ifaddrmsg)
 */
import { bitsOf } from "../../../net/ip.ts";
import type { Prefix } from "../../../net/prefix.ts";
import { findValue } from "../attribute.ts";
import { AF_INET, AF_INET6 } from "../constants.ts";
import { malformed } from "../error.ts";
import { fixedPart } from "../fixed-part.ts";
import { decodeIp } from "../ip-bytes.ts";
import { IFA_ADDRESS, IFA_LOCAL, RTM_NEWADDR } from "./constants.ts";

const CODEC = fixedPart({
  name: "address message",
  type: RTM_NEWADDR,
  typeName: "RTM_NEWADDR",
  bytes: 8,
  fields: {
    /** AF_* */
    family: [0, "uint8"],
    prefixLength: [1, "uint8"],
    /** The low byte of IFA_F_*; the attribute IFA_FLAGS holds all of them. */
    flags: [2, "uint8"],
    /** RT_SCOPE_* */
    scope: [3, "uint8"],
    /** Index of the link. */
    index: [4, "uint32"],
  },
});

export type AddressMessage = ReturnType<typeof CODEC.decode>;

export const encodeAddress = CODEC.encode;

export const decodeAddress = CODEC.decode;

/**
 * Returns the link's own address (IFA_LOCAL if there is a peer) with its prefix length; undefined for families other
 * than IP. Throws NetlinkError if the message contradicts itself.
 */
export function prefixOf({ family, prefixLength, attributes }: AddressMessage): Prefix | undefined {
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  const value = findValue(attributes, IFA_LOCAL) ?? findValue(attributes, IFA_ADDRESS);
  if (value === undefined) throw malformed("address message", 8, "no address", "IFA_LOCAL or IFA_ADDRESS");
  const ip = decodeIp(value);
  if (ip.family !== (family === AF_INET ? 4 : 6)) {
    throw malformed("address message", 0, `family ${family}`, `that of an address of ${value.length} bytes`);
  }
  if (prefixLength > bitsOf(ip.family)) {
    throw malformed("address message", 1, `prefix length ${prefixLength}`, `at most ${bitsOf(ip.family)}`);
  }
  return { ip, length: prefixLength };
}
