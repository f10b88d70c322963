/** Addresses as big-endian bytes: 4 for IPv4, 16 for IPv6. */
import { invariant } from "../lib/invariant.ts";
import { bitsOf, type Family, type Ip } from "../net/ip.ts";

/** Returns 4 or 16 bytes, big-endian. */
export function encodeAddress(ip: Ip): Uint8Array {
  const bytes = new Uint8Array(bitsOf(ip.family) / 8);
  let rest = ip.value;
  for (let index = bytes.length - 1; index >= 0; index--) {
    bytes[index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}

/** The inverse of {@link encodeAddress}. */
export function decodeAddress(bytes: Uint8Array): Ip {
  invariant(bytes.length === 4 || bytes.length === 16, `An address has 4 or 16 bytes, not ${bytes.length}`);
  const family: Family = bytes.length === 4 ? 4 : 6;
  return { family, value: bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n) };
}

/**
 * Many addresses of one family in one array. It doubles as it grows: a million IPv4 addresses take 4 MB here and
 * would take 200 MB as rows.
 */
export class PackedAddresses {
  readonly #width: number;
  #bytes = new Uint8Array(1024);
  #length = 0;

  constructor(family: Family) {
    this.#width = bitsOf(family) / 8;
  }

  push(address: Uint8Array): void {
    if (this.#length + this.#width > this.#bytes.length) {
      const grown = new Uint8Array(this.#bytes.length * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(address, this.#length);
    this.#length += this.#width;
  }

  /** Returns a copy of the pushed addresses. */
  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}
