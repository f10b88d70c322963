/**
 * Pools against the Subnets that cover their network: a pool needs none, but where there is one it lies inside.
 */
import { compareIp, type Ip } from "../../net/ip.ts";
import { prefixesOverlap } from "../../net/prefix.ts";
import type { Range } from "../../net/range.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Subnet } from "../../resources/subnet.ts";
import { ordinalsOf } from "../../resources/usage/ordinals.ts";

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
  const own = ordinalsOf(pool.spec.ranges);
  const offered = near.flatMap(({ spec }) => without(spec.ranges, spec.excluded));
  const outside = without(own.ranges, offered);
  const count = outside.reduce((sum, { first, last }) => sum + last.value - first.value + 1n, 0n);
  return { subnets: near.map(({ name }) => name), count, total: own.size, first: outside[0]?.first };
}

/** A generated pool lies in its own Subnet, whatever others of the network there are. */
function covers({ name, spec }: Subnet, pool: IpPool): boolean {
  const { generated, addressSpace, subnet } = pool.spec;
  if (generated !== undefined && generated.subnet !== name) return false;
  return spec.addressSpace === addressSpace && prefixesOverlap(spec.subnet, subnet);
}

/** The addresses of `ranges` that are not in `taken`; both are of one family, in any order, and may overlap. */
function without(ranges: readonly Range[], taken: readonly Range[]): Range[] {
  const holes = taken.toSorted((a, b) => compareIp(a.first, b.first));
  return ordinalsOf(ranges).ranges.flatMap(({ first, last }) => {
    const left: Range[] = [];
    let from = first.value;
    for (const hole of holes) {
      if (hole.last.value < from) continue;
      if (hole.first.value > last.value) break;
      if (hole.first.value > from) left.push(rangeOf(first, from, hole.first.value - 1n));
      from = hole.last.value + 1n;
    }
    if (from <= last.value) left.push(rangeOf(first, from, last.value));
    return left;
  });
}

function rangeOf({ family }: Ip, first: bigint, last: bigint): Range {
  return { first: { family, value: first }, last: { family, value: last } };
}
