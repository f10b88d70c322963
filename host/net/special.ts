/** Addresses with a meaning of their own: no pod can have them, and no route can lead to them as a next hop. */
import type { Ip } from "./ip.ts";
import { parsePrefix, prefixContains } from "./prefix.ts";
import { type Range, rangeOfPrefix, rangesOverlap } from "./range.ts";

/**
 * This host, loopback, multicast, the limited broadcast address; in IPv6 also the link-local network (RFC 4291 §2.5.6).
 * Linux serves the rest of 240.0.0.0/4 like any other network.
 */
export const SPECIAL_PREFIXES = [
  ...["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32"],
  ...["::/127", "fe80::/10", "ff00::/8"],
].flatMap((text) => parsePrefix(text) ?? []);

const SPECIAL_RANGES = SPECIAL_PREFIXES.map(rangeOfPrefix);

export function isSpecial(ip: Ip): boolean {
  return SPECIAL_PREFIXES.some((prefix) => prefixContains(prefix, ip));
}

/** Returns the ranges without special addresses: the list itself if it has none. */
export function withoutSpecial(ranges: readonly Range[]): readonly Range[] {
  return SPECIAL_RANGES.reduce<readonly Range[]>((left, special) => {
    if (!left.some((range) => rangesOverlap(range, special))) return left;
    return left.flatMap((range) => (rangesOverlap(range, special) ? partsAround(special, range) : [range]));
  }, ranges);
}

/** Returns the rest of the range below and above `hole`, which it overlaps. */
function partsAround(hole: Range, { first, last }: Range): Range[] {
  const { family } = first;
  const below = { first, last: { family, value: hole.first.value - 1n } };
  const above = { first: { family, value: hole.last.value + 1n }, last };
  return [below, above].filter((part) => part.first.value <= part.last.value);
}
