import type { Prefix } from "../../../net/prefix.ts";
import type { AddressState } from "../../../plan/state.ts";
import { type Attribute, attribute, decodeUint32, encodeUint32, findValue, readValue } from "../attribute.ts";
import { malformed } from "../error.ts";
import { type AddressMessage, encodeAddress } from "../families.ts";
import { decodeFamily, decodeIpOf, decodePrefixOf, encodeFamily, encodeIp } from "../ip-bytes.ts";
import { IFA_ADDRESS, IFA_CACHEINFO, IFA_FLAGS, IFA_LOCAL } from "./constants.ts";

/** With a peer, the prefix has the length of the peer's. */
export interface Address extends Omit<AddressState, "link" | "rest"> {
  readonly link: number;
  /** Attributes besides those that follow from the other fields. */
  readonly rest?: readonly Attribute[] | undefined;
}

/** Attributes with a field in {@link Address}, or of state, such as the age of the address. */
const NOT_REST = new Set([IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS, IFA_CACHEINFO]);

/** Returns the attributes without a field in {@link Address}. */
export function restOf({ attributes }: AddressMessage): Attribute[] {
  return attributes.filter(({ type }) => !NOT_REST.has(type));
}

/**
 * Returns the link's address (IFA_LOCAL if there is a peer) with its prefix length; undefined for families other than
 * IP. Throws NetlinkError if the message contradicts itself.
 */
export function prefixOf({ family: code, prefixLength, attributes }: AddressMessage): Prefix | undefined {
  const family = decodeFamily(code);
  if (family === undefined) return undefined;
  const value = findValue(attributes, IFA_LOCAL) ?? findValue(attributes, IFA_ADDRESS);
  if (value === undefined) throw malformed("address message", 8, "no address", "IFA_LOCAL or IFA_ADDRESS");
  return decodePrefixOf(family, value, prefixLength);
}

/** Returns undefined for families other than IP. Throws NetlinkError for a message that contradicts itself. */
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

/** Returns the IP addresses. Throws as {@link addressOf}. */
export const addressesIn = (messages: readonly AddressMessage[] = []): Address[] =>
  messages.flatMap((message) => addressOf(message) ?? []);

/** Encodes the address. The fixed part has only the low byte of the flags; an attribute has all if there are more. */
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
