/** Addresses, ranges and shapes as text, for the tests of the core's door. */
import type { PoolShape } from "../../../host/core/pool-shape.ts";
import { formatIp, type Ip, parseIp } from "../../../host/net/ip.ts";
import { parsePrefixOrIp } from "../../../host/net/prefix.ts";
import { parseRange, type Range, rangeOfPrefix } from "../../../host/net/range.ts";

export function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

export function range(text: string): Range {
  const prefix = parsePrefixOrIp(text);
  const parsed = prefix === undefined ? parseRange(text) : rangeOfPrefix(prefix);
  if (parsed === undefined) throw new Error(`not a range: ${text}`);
  return parsed;
}

export function shape(ranges: string[], masked: string[] = []): PoolShape {
  return { ranges: ranges.map(range), masked: masked.map(range) };
}

export function textOf(found: Ip | undefined): string | undefined {
  return found === undefined ? undefined : formatIp(found);
}
