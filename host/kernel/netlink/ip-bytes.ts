import { bitsOf, type Family, type Ip } from "../../net/ip.ts";
import type { Prefix } from "../../net/prefix.ts";
import { viewOf } from "./attribute.ts";
import { AF_INET, AF_INET6 } from "./constants.ts";
import { malformed } from "./error.ts";

/** Decodes four bytes as IPv4, sixteen as IPv6. Throws NetlinkError for any other length. */
export function decodeIp(bytes: Uint8Array): Ip {
  if (bytes.length !== 4 && bytes.length !== 16) throw malformed("address", 0, `${bytes.length} bytes`, "4 or 16");
  const view = viewOf(bytes);
  if (bytes.length === 4) return { family: 4, value: BigInt(view.getUint32(0)) };
  return { family: 6, value: (view.getBigUint64(0) << 64n) | view.getBigUint64(8) };
}

export function encodeIp({ family, value }: Ip): Uint8Array {
  const bytes = new Uint8Array(family === 4 ? 4 : 16);
  const view = viewOf(bytes);
  if (family === 4) view.setUint32(0, Number(value));
  else {
    view.setBigUint64(0, value >> 64n);
    view.setBigUint64(8, value & 0xffff_ffff_ffff_ffffn);
  }
  return bytes;
}

export function encodeFamily(family: Family): number {
  return family === 4 ? AF_INET : AF_INET6;
}

/** Returns undefined for families other than IP. */
export function decodeFamily(family: number): Family | undefined {
  return family === AF_INET ? 4 : family === AF_INET6 ? 6 : undefined;
}

/** Decodes an address. Throws NetlinkError unless it is of the family. */
export function decodeIpOf(family: Family, bytes: Uint8Array): Ip {
  const ip = decodeIp(bytes);
  if (ip.family !== family) throw malformed("address", 0, `${bytes.length} bytes`, `${bitsOf(family) / 8}`);
  return ip;
}

/**
 * Decodes a prefix whose length is in the fixed part. Without an attribute the address is zero (a default route).
 * Throws NetlinkError for a length or a family that does not fit.
 */
export function decodePrefixOf(family: Family, bytes: Uint8Array | undefined, length: number): Prefix {
  if (length > bitsOf(family)) throw malformed("prefix", 0, `length ${length}`, `at most ${bitsOf(family)}`);
  if (bytes === undefined && length > 0) throw malformed("prefix", 0, `length ${length} without address`, "both");
  return { ip: bytes === undefined ? { family, value: 0n } : decodeIpOf(family, bytes), length };
}

/** Returns the attribute's value; undefined for length 0, which messages omit. */
export function encodePrefix({ ip, length }: Prefix): Uint8Array | undefined {
  return length === 0 ? undefined : encodeIp(ip);
}
