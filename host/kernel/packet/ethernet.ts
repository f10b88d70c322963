/**
 * Ethernet frames, whose VLAN tag the kernel has removed.
 *
 *      0             6        12           14
 *      ├ destination ┼ source ┼ ether type ┼ payload …      (IEEE 802.3)
 */
import type { Mac } from "../../net/mac.ts";
import { encodeMac } from "../mac-bytes.ts";

export const ETH_P_ARP = 0x0806;
export const ETH_P_IPV6 = 0x86dd;
export const HEADER_BYTES = 14;

export const BROADCAST_MAC = "ff:ff:ff:ff:ff:ff" as Mac;

/** Reads the six bytes at `at`, which must exist. */
export function readMac(bytes: Uint8Array, at: number): Mac {
  return bytes
    .subarray(at, at + 6)
    .toHex()
    .replace(/..(?=.)/g, "$&:") as Mac;
}

/** Returns a frame with a header and room for `payloadBytes`. */
export function createFrame(destination: Mac, source: Mac, type: number, payloadBytes: number): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + payloadBytes);
  frame.set(encodeMac(destination));
  frame.set(encodeMac(source), 6);
  frame.set([type >> 8, type & 0xff], 12);
  return frame;
}

/** Returns whether the frame is of the type and at least `bytes` long. */
export function isFrameOf(frame: Uint8Array, type: number, bytes: number): boolean {
  return frame.length >= bytes && frame[12] === type >> 8 && frame[13] === (type & 0xff);
}
