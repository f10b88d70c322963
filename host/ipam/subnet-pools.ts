/**
 * Pools that are generated out of Subnets: which of them serve a NIC (docs/subnets.md).
 */
import type { Family } from "../net/ip.ts";
import { type PoolOwner, poolOwnerKey } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";

/** What a workload wants for one NIC and one family: addresses in one pool per Subnet, together `count`. */
export interface PoolDemand {
  readonly application: PoolOwner;
  readonly ifName: string;
  readonly family: Family;
  /** Names of Subnets in the order written; at least one. A later one is used when those before it are full. */
  readonly subnets: readonly string[];
  readonly count: number;
  /** Why so many, a sentence without its end: `50 replicas and 1 more`. */
  readonly reason: string;
  /** Whether the pools go with the workload. */
  readonly reclaim: boolean;
  /** False: only for pods that a former version of the workload still has, beside what the current one wants. */
  readonly isCurrent: boolean;
}

export interface SubnetPoolRequest {
  /** What the pod belongs to. */
  readonly application: Pick<PoolOwner, "namespace" | "uid">;
  readonly ifName: string;
  readonly family: Family;
  readonly subnets: readonly string[];
}

/** The pools of the application for the NIC, by Subnet in the order of the wish, of one Subnet by name. */
export function findSubnetPool(
  pools: Iterable<IpPool>,
  { application, ifName, family, subnets }: SubnetPoolRequest,
): IpPool[] {
  const key = poolOwnerKey(application);
  const own = [...pools].filter(({ spec }) => {
    const { generated } = spec;
    return (
      generated !== undefined &&
      generated.interface === ifName &&
      spec.family === family &&
      poolOwnerKey(generated.application) === key &&
      subnets.includes(generated.subnet)
    );
  });
  const rank = ({ spec }: IpPool): number => subnets.indexOf(spec.generated?.subnet ?? "");
  return own.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}
