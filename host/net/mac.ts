/** MAC addresses of Ethernet as canonical text. */
declare const macBrand: unique symbol;

/** Six octets in lower-case hexadecimal with colons: `0a:1b:2c:3d:4e:5f`. */
export type Mac = string & { readonly [macBrand]: true };

const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;

/** Parses six octets of two hexadecimal digits, separated by colons or dashes. Returns undefined if the text is not a MAC address. */
export function parseMac(text: string): Mac | undefined {
  const canonical = text.toLowerCase().replaceAll("-", ":");
  return MAC.test(canonical) ? (canonical as Mac) : undefined;
}
