/**
 * Addresses, prefixes and ranges as text, and as packed bytes: 4 or 16 big-endian bytes each.
 * Text that is none throws a TypeError; an IPv6 zone (`%eth0`) is no part of an address.
 */
import { readIp, widthOf, writeIp } from "../../../host/core/ip-codec.ts";
import { type Family, formatIp, type Ip, parseIp } from "../../../host/net/ip.ts";
import { type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
import { parseRange, type Range, rangeOfPrefix } from "../../../host/net/range.ts";

/** "10.0.0.7" or "fd00::1". */
export function requireIp(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new TypeError(`Not an IP address: "${text}", wanted one like "10.0.0.7" or "fd00::1"`);
  return ip;
}

/** "10.0.0.0/24"; host bits are kept. */
export function requirePrefix(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix === undefined)
    throw new TypeError(`Not a prefix: "${text}", wanted one like "10.0.0.0/24" or "fd00::/64"`);
  return prefix;
}

/** "10.0.0.1-10.0.0.9", "10.0.0.0/24" or one address. */
export function requireRange(text: string): Range {
  if (text.includes("/")) return rangeOfPrefix(requirePrefix(text));
  const range = parseRange(text);
  if (range !== undefined) return range;
  throw new TypeError(`Not a range: "${text}", wanted one like "10.0.0.1-10.0.0.9", "10.0.0.0/24" or "10.0.0.7"`);
}

/** The packed bytes of addresses of one family. */
export function packIps(ips: readonly Ip[]): Uint8Array {
  const width = widthOf(ips[0]?.family ?? 4);
  const view = new DataView(new ArrayBuffer(ips.length * width));
  for (const [index, ip] of ips.entries()) {
    if (widthOf(ip.family) !== width) throw new TypeError(`Two families in one batch, the second at ${formatIp(ip)}`);
    writeIp(view, index * width, ip);
  }
  return new Uint8Array(view.buffer);
}

/** The packed bytes of addresses, all IPv4 or all IPv6, for the batch methods of `values`. */
export function pack(addresses: readonly string[]): Uint8Array {
  return packIps(addresses.map(requireIp));
}

/** The addresses of packed bytes of the family, the other way round. */
export function unpack(packed: Uint8Array, family: Family): string[] {
  const width = widthOf(family);
  if (packed.length % width !== 0) throw new TypeError(`${packed.length} bytes, wanted a multiple of ${width}`);
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  return Array.from({ length: packed.length / width }, (_, index) => formatIp(readIp(view, index * width, family)));
}

/** Asks about those addresses that are of the family, as one packed batch; the others are a "no". */
export function askEach(
  addresses: readonly string[],
  family: Family,
  ask: (packed: Uint8Array) => Uint8Array,
): boolean[] {
  const ips = addresses.map(requireIp);
  const answers = ask(packFamily(ips, family)).values();
  return ips.map((ip) => ip.family === family && answers.next().value === 1);
}

/** The packed bytes of those addresses that are of the family. */
export function packFamily(ips: readonly Ip[], family: Family): Uint8Array {
  return packIps(ips.filter((ip) => ip.family === family));
}
