/** Finds the generated pools that serve a NIC (docs/subnets.md). */
import type { Family } from "../net/ip.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { PoolsByName } from "../resources/pools-by-name.ts";

export interface SubnetPoolRequest {
  /** The pod's pool owner. */
  readonly application: PoolOwner;
  readonly ifName: string;
  readonly family: Family;
  /** Names of Subnets in the order written; at least one. A later one is used when those before it are full. */
  readonly subnets: readonly string[];
}

/** A workload's demand for one NIC and family: `count` addresses in total, in one pool per Subnet. */
export interface PoolDemand extends SubnetPoolRequest {
  readonly count: number;
  /** Why this number, a sentence without its full stop: `50 replicas and 1 more`. */
  readonly reason: string;
  /** The same, at more length, while the pools have less. */
  readonly reasonIfShort?: string;
  /** Whether the pools are deleted with the workload. */
  readonly reclaim: boolean;
  /** false for pods of a former version of the workload. */
  readonly isCurrent: boolean;
  /** Set if a pod is replaced before it has ended: its address is needed besides. */
  readonly turnover?: Turnover | undefined;
}

export interface Turnover {
  /** Number of addresses for the pods that are not ending. */
  readonly needed: number;
  /** Whether `count` does not depend on the pods. */
  readonly isFixed: boolean;
}

/** Returns the workload's pools for the NIC, in the order of the requested Subnets, then by name. */
export function findSubnetPool(
  pools: Pick<PoolsByName, "ofOwner">,
  { application, ifName, family, subnets }: SubnetPoolRequest,
): IpPool[] {
  const own = [...pools.ofOwner(application)].filter(
    ({ spec: { generated, ...spec } }) =>
      generated?.interface === ifName && spec.family === family && subnets.includes(generated.subnet),
  );
  const rank = ({ spec }: IpPool): number => subnets.indexOf(spec.generated?.subnet ?? "");
  return own.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}
