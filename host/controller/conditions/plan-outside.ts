/**
 * Compares a pool with the Subnets that cover its network. A pool needs no Subnet, but if there is one it should lie
 * inside.
 */
import { joinSpans, rangesOf, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import type { Ip } from "../../net/ip.ts";
import { prefixesOverlap } from "../../net/prefix.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Subnet } from "../../resources/subnet.ts";

interface Outside {
  /** Names of the Subnets whose network overlaps the pool's. */
  readonly subnets: readonly string[];
  /** Number of the pool's addresses in none of these Subnets, and of all its addresses. */
  readonly count: bigint;
  readonly total: bigint;
  /** The lowest address outside. */
  readonly first: Ip | undefined;
}

/** Returns undefined if no Subnet covers any of the pool's network. */
export function planOutside(pool: IpPool, subnets: readonly Subnet[]): Outside | undefined {
  const near = subnets.filter((subnet) => covers(subnet, pool));
  if (near.length === 0) return undefined;
  const own = spansOf(pool.spec.ranges);
  const offered = near.flatMap(({ spec }) => withoutSpans(spansOf(spec.ranges), spansOf(spec.excluded)));
  const outside = withoutSpans(own, joinSpans(offered));
  const [lowest] = rangesOf(outside, pool.spec.family);
  return { subnets: near.map(({ name }) => name), count: sizeOf(outside), total: sizeOf(own), first: lowest?.first };
}

/** A generated pool counts only against its own Subnet. */
function covers({ name, spec }: Subnet, pool: IpPool): boolean {
  const { generated, addressSpace, subnet } = pool.spec;
  if (generated !== undefined && generated.subnet !== name) return false;
  return spec.addressSpace === addressSpace && prefixesOverlap(spec.subnet, subnet);
}
