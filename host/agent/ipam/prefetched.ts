/**
 * Addresses that were claimed for a NIC ahead of its ADD are given back where they do not fit (prefetch).
 */

import type { NicDemand } from "../../ipam/model.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { findPoolOfRequested } from "../../ipam/requested-ips.ts";
import { equalIp } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Prefetched } from "./cluster-ipam.ts";
import type { AddressDemand } from "./sources/source.ts";

/**
 * Gives back what was claimed ahead for the NIC of the demand, unless it is just what the demand would be served with.
 */
export async function giveBackUnfit(
  prefetched: Prefetched,
  poolCache: PoolCache,
  { nics, requested, claimant: { owner, ifName } }: AddressDemand,
): Promise<void> {
  const claimed = prefetched.claimedFor(owner, ifName);
  if (claimed.length === 0) return;
  const nic = nics.find((each) => each.ifName === ifName);
  if (nic !== undefined && isFit(poolCache, nic, requested, claimed)) return;
  await prefetched.discard(owner, ifName);
}

/** Returns whether all of them lie in candidates, each family has one, and no other address is requested. */
function isFit(
  poolCache: PoolCache,
  nic: NicDemand,
  requested: AddressDemand["requested"],
  claimed: readonly Allocation[],
): boolean {
  const isServed = nic.families.every(({ family }) => claimed.some(({ ip }) => ip.family === family));
  const isWanted = ({ space, ip }: Allocation): boolean => {
    const found = findPoolOfRequested(poolCache, nic, ip);
    return found.kind === "pool" && found.pool.spec.addressSpace === space;
  };
  const isGiven = requested.every((request) => claimed.some(({ ip }) => equalIp(ip, request.ip)));
  return isServed && isGiven && claimed.every(isWanted);
}
