/** Prefixes (CIDR): an address and a length. */
import { bitsOf, type Family, formatIp, type Ip, parseIp } from "./ip.ts";

/** `ip` may have host bits; {@link maskPrefix} clears them. `length` is 0 to 32 or 0 to 128. */
export interface Prefix {
  readonly ip: Ip;
  readonly length: number;
}

const LENGTH = /^(?:0|[1-9][0-9]{0,2})$/;

/** Parses `address/length`; host bits are kept. Returns undefined if the text is not a prefix. */
export function parsePrefix(text: string): Prefix | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;
  const ip = parseIp(text.slice(0, slash));
  const lengthText = text.slice(slash + 1);
  if (ip === undefined || !LENGTH.test(lengthText)) return undefined;
  const length = Number(lengthText);
  return length <= bitsOf(ip.family) ? { ip, length } : undefined;
}

/** Like {@link parsePrefix}; an address without a length is a prefix of full length. */
export function parsePrefixOrIp(text: string): Prefix | undefined {
  const ip = parseIp(text);
  return ip === undefined ? parsePrefix(text) : wholePrefix(ip);
}

/** Returns the prefix of this one address: /32 or /128. */
export function wholePrefix(ip: Ip): Prefix {
  return { ip, length: bitsOf(ip.family) };
}

/** All addresses of a family: the destination of a default route. */
export const EVERYWHERE: Readonly<Record<Family, Prefix>> = {
  4: { ip: { family: 4, value: 0n }, length: 0 },
  6: { ip: { family: 6, value: 0n }, length: 0 },
};

export function formatPrefix(prefix: Prefix): string {
  return `${formatIp(prefix.ip)}/${prefix.length}`;
}

function hostMaskOf(prefix: Prefix): bigint {
  return (1n << BigInt(bitsOf(prefix.ip.family) - prefix.length)) - 1n;
}

/** Returns the lowest address of the prefix. */
export function firstIp(prefix: Prefix): Ip {
  return { family: prefix.ip.family, value: prefix.ip.value & ~hostMaskOf(prefix) };
}

/** Returns the highest address of the prefix. */
export function lastIp(prefix: Prefix): Ip {
  return { family: prefix.ip.family, value: prefix.ip.value | hostMaskOf(prefix) };
}

/** Returns the prefix without host bits: its canonical form. */
export function maskPrefix(prefix: Prefix): Prefix {
  return { ip: firstIp(prefix), length: prefix.length };
}

/** Returns whether `ip` has the prefix's family and is inside it. */
export function prefixContains(prefix: Prefix, ip: Ip): boolean {
  return ip.family === prefix.ip.family && ((ip.value ^ prefix.ip.value) & ~hostMaskOf(prefix)) === 0n;
}

/** Returns whether the prefixes share an address. One of them then contains the other. */
export function prefixesOverlap(a: Prefix, b: Prefix): boolean {
  return a.length <= b.length ? prefixContains(a, b.ip) : prefixContains(b, a.ip);
}
