/**
 * Addresses of links as plain values.
 */
import type { Ip } from "../../../net/ip.ts";
import type { Prefix } from "../../../net/prefix.ts";
import { type Attribute, attribute, decodeUint32, encodeUint32, findValue, readValue } from "../attribute.ts";
import { decodeFamily, decodeIpOf, encodeFamily, encodeIp } from "../ip-bytes.ts";
import { IFA_ADDRESS, IFA_CACHEINFO, IFA_FLAGS, IFA_LOCAL } from "./constants.ts";
import { type AddressMessage, encodeAddress, prefixOf } from "./message.ts";

export interface Address {
  /** Index of the link. */
  readonly link: number;
  /** The link's own address, host bits kept. With a peer, the length is that of the peer's prefix. */
  readonly prefix: Prefix;
  /** The other end of a point-to-point link; undefined when there is none. */
  readonly peer?: Ip | undefined;
  /** RT_SCOPE_*; 0 is global. */
  readonly scope: number;
  /** IFA_F_* */
  readonly flags: number;
  /** What else it is given, besides the attributes that follow from the other fields. */
  readonly rest?: readonly Attribute[] | undefined;
}

/** Those that {@link Address} has by itself, or that are state: how old the address is. */
const NOT_REST = new Set([IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS, IFA_CACHEINFO]);

/** What else the message says of the address. */
export function restOf({ attributes }: AddressMessage): Attribute[] {
  return attributes.filter(({ type }) => !NOT_REST.has(type));
}

/** Undefined for families other than IP. Throws for messages that contradict themselves. */
export function addressOf(message: AddressMessage): Address | undefined {
  const prefix = prefixOf(message);
  const family = decodeFamily(message.family);
  if (prefix === undefined || family === undefined) return undefined;
  const far = findValue(message.attributes, IFA_LOCAL) && findValue(message.attributes, IFA_ADDRESS);
  const other = far && decodeIpOf(family, far);
  const peer = other?.value === prefix.ip.value ? undefined : other;
  const flags = readValue(message.attributes, IFA_FLAGS, decodeUint32) ?? message.flags;
  return { link: message.index, prefix, peer, scope: message.scope, flags };
}

/** The flags' low byte stands in the fixed part; all of them in an attribute when there are more. */
export function encodeAddressValue({ link, prefix, peer, scope, flags, rest = [] }: Address): Uint8Array {
  const family = encodeFamily(prefix.ip.family);
  const attributes: Attribute[] = [
    attribute(IFA_LOCAL, encodeIp(prefix.ip)),
    attribute(IFA_ADDRESS, encodeIp(peer ?? prefix.ip)),
    ...rest,
  ];
  if (flags > 0xff) attributes.push(attribute(IFA_FLAGS, encodeUint32(flags)));
  return encodeAddress({ family, prefixLength: prefix.length, flags: flags & 0xff, scope, index: link, attributes });
}
