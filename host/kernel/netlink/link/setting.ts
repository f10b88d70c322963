/**
 * Per-link settings of IPv4 and IPv6, which are part of the link's message:
 *
 *      IFLA_AF_SPEC { AF_INET { IFLA_INET_CONF [s32 …] }, AF_INET6 { …, IFLA_INET6_CONF [s32 …] } }
 */
import type { Family } from "../../../net/ip.ts";
import { type Attribute, attribute, decodeAttributes, encodeUint32, findValue, nest } from "../attribute.ts";
import { AF_INET, AF_INET6 } from "../constants.ts";
import { malformed } from "../error.ts";
import type { LinkMessage } from "../families.ts";
import { int32At } from "../numbers.ts";
import { IFLA_AF_SPEC, IFLA_INET_CONF, IFLA_INET6_ADDR_GEN_MODE, IFLA_INET6_CONF } from "./constants.ts";

const WORD_BYTES = 4;

/** linux/ip.h */
const IPV4_DEVCONF_RP_FILTER = 8;

/** Returns the content of IFLA_AF_SPEC that sets `rp_filter` of the link. */
export function encodeRpFilter(value: number): Attribute {
  return nest(AF_INET, [nest(IFLA_INET_CONF, [attribute(IPV4_DEVCONF_RP_FILTER, encodeUint32(value))])]);
}

/** Returns the content of IFLA_AF_SPEC that sets `addr_gen_mode` of the link. */
export function encodeAddressGeneration(mode: number): Attribute {
  return nest(AF_INET6, [attribute(IFLA_INET6_ADDR_GEN_MODE, Uint8Array.of(mode))]);
}

function findInside(value: Uint8Array | undefined, type: number): Uint8Array | undefined {
  return value && findValue(decodeAttributes(value, 0, new Set([type])), type);
}

/** Returns the setting at `position` of the family's array; undefined without the protocol or the setting. */
export function readLinkSetting({ attributes }: LinkMessage, family: Family, position: number): number | undefined {
  const [protocol, conf] = family === 4 ? [AF_INET, IFLA_INET_CONF] : [AF_INET6, IFLA_INET6_CONF];
  const words = findInside(findInside(findValue(attributes, IFLA_AF_SPEC), protocol), conf);
  if (words === undefined || words.length < (position + 1) * WORD_BYTES) return undefined;
  if (words.length % WORD_BYTES !== 0) throw malformed("settings of a link", 0, `${words.length} bytes`, "words of 4");
  return int32At(words, position * WORD_BYTES);
}
