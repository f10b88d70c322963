/**
 * Pools against the Subnets that cover their network: a pool needs none, but where there is one it lies inside.
 */
import { joinSpans, rangesOf, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import type { Ip } from "../../net/ip.ts";
import { prefixesOverlap } from "../../net/prefix.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Subnet } from "../../resources/subnet.ts";

export interface Outside {
  /** Names of the Subnets whose networks the pool's overlaps. */
  readonly subnets: readonly string[];
  /** How many addresses of the pool's ranges none of them has, out of how many. */
  readonly count: bigint;
  readonly total: bigint;
  /** The lowest of them. */
  readonly first: Ip | undefined;
}

/** Undefined when no Subnet covers any of the pool's network. */
export function planOutside(pool: IpPool, subnets: readonly Subnet[]): Outside | undefined {
  const near = subnets.filter((subnet) => covers(subnet, pool));
  if (near.length === 0) return undefined;
  const own = spansOf(pool.spec.ranges);
  const offered = near.flatMap(({ spec }) => withoutSpans(spansOf(spec.ranges), spansOf(spec.excluded)));
  const outside = withoutSpans(own, joinSpans(offered));
  const [lowest] = rangesOf(outside, pool.spec.family);
  return { subnets: near.map(({ name }) => name), count: sizeOf(outside), total: sizeOf(own), first: lowest?.first };
}

/** A generated pool lies in its own Subnet, whatever others of the network there are. */
function covers({ name, spec }: Subnet, pool: IpPool): boolean {
  const { generated, addressSpace, subnet } = pool.spec;
  if (generated !== undefined && generated.subnet !== name) return false;
  return spec.addressSpace === addressSpace && prefixesOverlap(spec.subnet, subnet);
}
