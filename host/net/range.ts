/** Inclusive address ranges of one family. */
import { equalIp, formatIp, type Ip, parseIp } from "./ip.ts";
import { firstIp, lastIp, type Prefix } from "./prefix.ts";

/** Both ends belong to the range; `first` ≤ `last`, of one family. */
export interface Range {
  readonly first: Ip;
  readonly last: Ip;
}

/** Parses `a` or `a-b`. Returns undefined if an end is not an address, the families differ, or `b` is below `a`. */
export function parseRange(text: string): Range | undefined {
  const dash = text.indexOf("-");
  const first = parseIp(dash < 0 ? text : text.slice(0, dash));
  const last = dash < 0 ? first : parseIp(text.slice(dash + 1));
  if (first === undefined || last === undefined) return undefined;
  if (first.family !== last.family || last.value < first.value) return undefined;
  return { first, last };
}

export function formatRange(range: Range): string {
  return equalIp(range.first, range.last) ? formatIp(range.first) : `${formatIp(range.first)}-${formatIp(range.last)}`;
}

/** Returns the range of all addresses of the prefix. */
export function rangeOfPrefix(prefix: Prefix): Range {
  return { first: firstIp(prefix), last: lastIp(prefix) };
}

export function rangeContains(range: Range, ip: Ip): boolean {
  return ip.family === range.first.family && range.first.value <= ip.value && ip.value <= range.last.value;
}

export function equalRange(a: Range, b: Range): boolean {
  return equalIp(a.first, b.first) && equalIp(a.last, b.last);
}

/** Returns whether the ranges share an address. */
export function rangesOverlap(a: Range, b: Range): boolean {
  return rangeContains(a, b.first) || rangeContains(b, a.first);
}
