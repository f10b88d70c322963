/**
 * Which addresses of a subnet a map shows, and their numbers: the whole subnet up to 2^24 addresses, else islands of
 * 256 around those in use.
 */
import { bitsOf, type Family, formatIp, type Ip } from "../../../host/net/ip.ts";
import { firstIp, type Prefix } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";

/** Largest subnet that is shown as a whole: bits. The core numbers so many addresses of a pool in its bitmap. */
const MAX_WHOLE_BITS = 24;

/** Most islands on a map of a larger subnet. */
const MAX_ISLANDS = 1_024;

/** Bits of an island. */
const ISLAND_BITS = 8;

export interface Segments {
  readonly family: Family;
  /** The bits of each. */
  readonly bits: number;
  /** First addresses, ascending. */
  readonly firsts: readonly bigint[];
  /** All islands in use; undefined if the subnet is one segment. */
  readonly islands: number | undefined;
}

/** `used`: addresses of the subnet, in any order. */
export function segmentsOf(subnet: Prefix, used: Iterable<{ readonly ip: Ip }>): Segments {
  const { family, value } = firstIp(subnet);
  const bits = bitsOf(family) - subnet.length;
  if (bits <= MAX_WHOLE_BITS) return { family, bits, firsts: [value], islands: undefined };
  const islands = new Set<bigint>();
  for (const { ip } of used) islands.add((ip.value >> BigInt(ISLAND_BITS)) << BigInt(ISLAND_BITS));
  const firsts = [...islands].sort((a, b) => (a < b ? -1 : 1)).slice(0, MAX_ISLANDS);
  return { family, bits: ISLAND_BITS, firsts, islands: islands.size };
}

export function rangesOfSegments({ family, bits, firsts }: Segments): Range[] {
  const length = (1n << BigInt(bits)) - 1n;
  return firsts.map((value) => ({ first: { family, value }, last: { family, value: value + length } }));
}

/** Returns the segments as records of the map's head. */
export function describeSegments({
  family,
  bits,
  firsts,
}: Segments): { readonly first: string; readonly bits: number }[] {
  return firsts.map((value) => ({ first: formatIp({ family, value }), bits }));
}
