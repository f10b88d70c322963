/** Which pools an operator looks at first. */
import type { PoolRecord } from "../../records/pool-record.ts";

/** Returns the pools that allocate nothing although they should, then by how full they are, then by name. */
export function poolsWorstFirst(pools: readonly PoolRecord[]): PoolRecord[] {
  const rank = (pool: PoolRecord): number => (pool.refused === undefined ? permilleOf(pool) : 1_001);
  return pools.toSorted((a, b) => rank(b) - rank(a) || (a.name < b.name ? -1 : 1));
}

function permilleOf({ used = "0", total = "0" }: PoolRecord): number {
  return total === "0" ? 0 : Number((BigInt(used) * 1_000n) / BigInt(total));
}
