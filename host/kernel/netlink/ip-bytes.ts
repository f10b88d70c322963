/**
 * Addresses in network byte order, as messages carry them.
 * Called by the message families. Effects: none.
 */
import type { Ip } from "../../net/ip.ts";
import { malformed } from "./error.ts";

/** Four bytes are IPv4, sixteen IPv6. Throws for any other length. */
export function decodeIp(bytes: Uint8Array): Ip {
  if (bytes.length !== 4 && bytes.length !== 16) throw malformed("address", 0, `${bytes.length} bytes`, "4 or 16");
  const value = bytes.reduce((high, byte) => (high << 8n) | BigInt(byte), 0n);
  return { family: bytes.length === 4 ? 4 : 6, value };
}

export function encodeIp({ family, value }: Ip): Uint8Array {
  const length = family === 4 ? 4 : 16;
  return Uint8Array.from({ length }, (_, index) => Number((value >> BigInt(8 * (length - 1 - index))) & 0xffn));
}
