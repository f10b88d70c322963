/** IP addresses as values. */
export type Family = 4 | 6;

/** The families in the order in which Berth always lists them. */
export const FAMILIES: readonly Family[] = [4, 6];

/** An address: `value` is the big-endian number, 32 bits for family 4, 128 bits for family 6. */
export interface Ip {
  readonly family: Family;
  readonly value: bigint;
}

/** Returns the width of an address of the family, in bits. */
export function bitsOf(family: Family): 32 | 128 {
  return family === 4 ? 32 : 128;
}

const DECIMAL_OCTET = /^(?:0|[1-9][0-9]{0,2})$/;
const HEX_GROUP = /^[0-9a-fA-F]{1,4}$/;

function parseIpv4Value(text: string): bigint | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  let value = 0;
  for (const part of parts) {
    if (!DECIMAL_OCTET.test(part)) return undefined;
    const octet = Number(part);
    if (octet > 255) return undefined;
    value = value * 256 + octet;
  }
  return BigInt(value);
}

/** Splits one side of `::` into 16-bit groups; a dotted quad may stand at the very end. */
function parseGroups(text: string, mayEndInQuad: boolean): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (mayEndInQuad && index === parts.length - 1 && part.includes(".")) {
      const quad = parseIpv4Value(part);
      if (quad === undefined) return undefined;
      groups.push(Number(quad >> 16n), Number(quad & 0xffffn));
    } else {
      if (!HEX_GROUP.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

function parseIpv6Value(text: string): bigint | undefined {
  const sides = text.split("::");
  if (sides.length > 2) return undefined;
  const [left = "", right] = sides;
  const head = parseGroups(left, right === undefined);
  if (head === undefined) return undefined;
  let groups = head;
  if (right !== undefined) {
    const tail = parseGroups(right, true);
    if (tail === undefined || head.length + tail.length > 7) return undefined;
    groups = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  }
  if (groups.length !== 8) return undefined;
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/**
 * Parses an address: dotted decimal without leading zeros, or any RFC 4291 §2.2 form.
 * Zones (`%eth0`) and blanks are not part of an address. Returns undefined if the text is not an address.
 */
export function parseIp(text: string): Ip | undefined {
  const family: Family = text.includes(":") ? 6 : 4;
  const value = family === 6 ? parseIpv6Value(text) : parseIpv4Value(text);
  return value === undefined ? undefined : { family, value };
}

/** Returns the longest run of two or more zero groups, the first one of equal length (RFC 5952 §4.2). */
function findZeroRun(groups: readonly number[]): { start: number; length: number } | undefined {
  let best: { start: number; length: number } | undefined;
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (groups[end] === 0) end++;
    if (end - start >= 2 && end - start > (best?.length ?? 0)) best = { start, length: end - start };
    if (end > start) start = end;
  }
  return best;
}

/** Formats an address: dotted decimal, or the canonical text of RFC 5952 §4 (never with a dotted quad). */
export function formatIp(ip: Ip): string {
  if (ip.family === 4) {
    const value = Number(ip.value);
    return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
  }
  const groups = Array.from({ length: 8 }, (_, index) => Number((ip.value >> BigInt(112 - 16 * index)) & 0xffffn));
  const hex = groups.map((group) => group.toString(16));
  const run = findZeroRun(groups);
  if (run === undefined) return hex.join(":");
  return `${hex.slice(0, run.start).join(":")}::${hex.slice(run.start + run.length).join(":")}`;
}

/** Orders by family, then by number. */
export function compareIp(a: Ip, b: Ip): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}

export function equalIp(a: Ip, b: Ip): boolean {
  return a.family === b.family && a.value === b.value;
}

/** Returns whether it is an IPv4-mapped IPv6 address, ::ffff:0:0/96 (RFC 4291 §2.5.5.2). */
export function isIpv4Mapped({ family, value }: Ip): boolean {
  return family === 6 && value >> 32n === 0xffffn;
}

/** Returns whether it is an IPv6 link-local address, fe80::/10 (RFC 4291 §2.5.6). */
export function isLinkLocal({ family, value }: Ip): boolean {
  return family === 6 && value >> 118n === 0x3fan;
}

/** Returns whether it is in 224.0.0.0/4 (RFC 1112) or ff00::/8 (RFC 4291 §2.7). */
export function isMulticast({ family, value }: Ip): boolean {
  return family === 4 ? value >> 28n === 0xen : value >> 120n === 0xffn;
}
