/**
 * What was claimed for a NIC before its ADD came, as the ADD sees it: waited for, and given back where it does not suit (allocation rule 7).
 * Called by add.ts; the claims are made by the cluster's prefetch.
 * Effects: writes to the registry.
 */

import type { NicDemand } from "../../ipam/model.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { findPoolOfRequested } from "../../ipam/requested-ips.ts";
import { equalIp } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { AddressDemand } from "./allocate.ts";
import type { Catalogue } from "./catalogue.ts";

export interface Prefetched {
  /** Waits for a claim under way for this NIC; from now on none is begun. Rejects with the signal's reason. */
  waitForClaim(owner: string, ifName: string, signal: AbortSignal): Promise<void>;
  /** What was claimed for the NIC and is not attached. */
  claimedFor(owner: string, ifName: string): readonly Allocation[];
  /** The ADD has attached it. */
  used(owner: string, ifName: string): void;
  /** It does not suit: goes back at once, without a cooldown. */
  discard(owner: string, ifName: string): Promise<void>;
}

export interface PrefetchedTools {
  readonly prefetched?: Prefetched | undefined;
  readonly catalogue: Catalogue;
}

/** Gives back what was claimed ahead for the NIC of the demand, unless it is just what the demand would be served with. */
export async function giveBackUnfit(
  { prefetched, catalogue }: PrefetchedTools,
  { nics, requested, claimant: { owner, ifName } }: AddressDemand,
): Promise<void> {
  const claimed = prefetched?.claimedFor(owner, ifName) ?? [];
  if (claimed.length === 0) return;
  const nic = nics.find((each) => each.ifName === ifName);
  if (nic !== undefined && isFit(catalogue.poolCache, nic, requested, claimed)) return;
  await prefetched?.discard(owner, ifName);
}

/** All of them lie in candidates, each family has one, and nobody asks for another. */
function isFit(
  poolCache: PoolCache,
  nic: NicDemand,
  asked: AddressDemand["requested"],
  claimed: readonly Allocation[],
): boolean {
  const isServed = nic.families.every(({ family }) => claimed.some(({ ip }) => ip.family === family));
  const isWanted = ({ space, ip }: Allocation): boolean => {
    const found = findPoolOfRequested(poolCache, nic, ip);
    return found.kind === "pool" && found.pool.spec.addressSpace === space;
  };
  const isGiven = asked.every((wish) => claimed.some(({ ip }) => equalIp(ip, wish.ip)));
  return isServed && isGiven && claimed.every(isWanted);
}
