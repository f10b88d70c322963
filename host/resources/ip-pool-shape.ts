/**
 * What of a pool may be handed out: its ranges, and the addresses inside them that never are.
 * Called whenever a pool or a reserved address changes; the result feeds the core.
 * Effects: none.
 */
import type { Range } from "../net/range.ts";
import type { IpPool } from "./ip-pool.ts";
import type { ReservedIp } from "./reserved-ip.ts";

/** Both lists are sorted and disjoint; `masked` lies inside the subnet, not necessarily inside `ranges`. */
export interface PoolShape {
  readonly ranges: readonly Range[];
  readonly masked: readonly Range[];
}

export function poolShape(_pool: IpPool, _reserved: readonly ReservedIp[]): PoolShape {
  throw new Error("poolShape is under construction");
}
