/**
 * Pools that were left by a workload that is gone, for a later one of its name (docs/subnets.md, `ippool-reclaim`).
 */
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import type { Application } from "../../../resources/fields/subnet-pool.ts";
import type { Supply } from "./capacity.ts";
import type { PoolState } from "./pool-state.ts";

/** Kept for a later workload of the same kind, namespace and name, for the same NIC. */
export function isLeftFor({ generated, now, supply }: PoolState, demand: PoolDemand, from: Supply): boolean {
  const { application: former } = generated;
  const { application } = demand;
  return (
    now !== undefined &&
    supply === from &&
    generated.interface === demand.ifName &&
    now.spec.family === demand.family &&
    former.uid !== application.uid &&
    former.kind === application.kind &&
    groupOf(former) === groupOf(application) &&
    former.namespace === application.namespace &&
    former.name === application.name
  );
}

function groupOf({ apiVersion }: Application): string {
  return apiVersion.split("/").slice(0, -1).join();
}
