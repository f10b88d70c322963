/**
 * What the ADD of an announced NIC will ask for, from the pod's object instead of a request: the same pools, the same place to begin.
 * Effects: waits until the pool cache knows the pools, and not for pools that may be on their way.
 */

import type { AnnouncedNic } from "../../ipam/plan-prefetch.ts";
import { isGrowing } from "../../ipam/subnet-capacity.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Pod } from "../../resources/pod.ts";
import type { QuarantineProber } from "../detection/quarantine-prober.ts";
import type { AddressDemand } from "../ipam/allocate.ts";
import { type DemandTools, prepareDemand } from "../ipam/demand.ts";
import type { PodIdentity } from "../ipam/pod-identity.ts";

export interface AheadDemandTools extends Omit<DemandTools, "poolChanges"> {
  /** Who the pod is for the ADD of this NIC. Not from the snapshot, which may be older than the pod. Throws ConfigError when an annotation is wrong. */
  readonly identityOf: (pod: Pod, ifName: string, signal: AbortSignal) => Promise<PodIdentity>;
  readonly keeper: Pick<QuarantineProber, "salt" | "hasSuspect">;
}

/** Throws what selection throws: ConfigError, CniError. */
export async function demandAhead(
  tools: AheadDemandTools,
  pod: Pod,
  nic: AnnouncedNic,
  signal: AbortSignal,
): Promise<AddressDemand> {
  const { ifName, network, ipamConf } = nic;
  invariant(ipamConf !== undefined, "Only NICs of this plugin are claimed ahead");
  const identity = await tools.identityOf(pod, ifName, signal);
  const wanting = { identity, ifName, network, ipamConf, containerId: "", requested: [] };
  // Warnings are the ADD's to tell.
  const quiet = { ...tools, poolChanges: undefined, log: tools.log.child({}, { level: "error" }) };
  const { demand } = await prepareDemand(quiet, wanting, signal);
  return {
    ...demand,
    seedText: `${demand.seedText}${tools.keeper.salt}`,
    randomize: (pool) => tools.keeper.hasSuspect(pool),
    // Its ADD waits for it.
    skipIfFull: isGrowing,
  };
}
