/** MAC addresses of Ethernet as canonical text. */
declare const macBrand: unique symbol;

/** Six octets in lower-case hexadecimal with colons: `0a:1b:2c:3d:4e:5f`. */
export type Mac = string & { readonly [macBrand]: true };

const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;

/** Parses six octets of two hexadecimal digits with colons or dashes. Returns undefined for other text. */
export function parseMac(text: string): Mac | undefined {
  const canonical = text.toLowerCase().replaceAll("-", ":");
  return MAC.test(canonical) ? (canonical as Mac) : undefined;
}

/** Returns undefined for a group's address as well, which no NIC can have as its own. */
export function parseNicMac(text: string): Mac | undefined {
  const mac = parseMac(text);
  return mac === undefined || Number.parseInt(mac, 16) % 2 === 1 || /^0[0:]*$/.test(mac) ? undefined : mac;
}

/** The address of a link of any kind. */
export interface LinkAddress {
  /** Undefined for an address of another kind than Ethernet's, with 8 or 20 octets. */
  readonly mac: Mac | undefined;
}

const IN_OCTETS = /^[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1)*[0-9a-f]{2}$/i;
const IN_PAIRS = /^[0-9a-f]{4}(?:[.][0-9a-f]{4})+$/i;
const LENGTHS: readonly number[] = [6, 8, 20];

/**
 * Parses the forms of Go's net.ParseMAC: 6, 8 or 20 octets with colons or dashes, or pairs with dots. Returns undefined
 * for other text.
 */
export function parseLinkAddress(text: string): LinkAddress | undefined {
  if (!IN_OCTETS.test(text) && !IN_PAIRS.test(text)) return undefined;
  const octets = text.toLowerCase().match(/[0-9a-f]{2}/g) ?? [];
  return LENGTHS.includes(octets.length) ? { mac: parseMac(octets.join(":")) } : undefined;
}
