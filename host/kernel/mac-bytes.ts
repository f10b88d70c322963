import { type Mac, parseMac } from "../net/mac.ts";

const HEX = Array.from({ length: 256 }, (_, octet) => octet.toString(16).padStart(2, "0"));

/** Returns undefined unless there are six bytes: tunnels have addresses of other lengths. */
export function decodeMac(octets: Uint8Array): Mac | undefined {
  if (octets.length !== 6) return undefined;
  let text = "";
  for (const octet of octets) text += text === "" ? HEX[octet] : `:${HEX[octet]}`;
  return parseMac(text);
}

export function encodeMac(mac: Mac): Uint8Array {
  return Uint8Array.from(mac.split(":"), (octet) => Number.parseInt(octet, 16));
}
