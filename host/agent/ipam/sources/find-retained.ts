/** Finds addresses retained for members of a demand, or bound to earlier pods of them, in order (retention). */
import { CniError, ErrorCode } from "../../../cni/error.ts";
import type { NicDemand } from "../../../ipam/model.ts";
import { type Proposal, proposalOf } from "../../../ipam/pick.ts";
import type { PoolCache } from "../../../ipam/pool-cache.ts";
import { findPoolOfRequested } from "../../../ipam/requested-ips.ts";
import { formatIp } from "../../../net/ip.ts";
import { compareRecords, isUnused, numberOf } from "../../../registry/claims.ts";
import type { Allocation } from "../../../registry/registry.ts";
import type { IpPool } from "../../../resources/ip-pool.ts";
import { type AddressDemand, isSameNic, type Search, workloadOf } from "./source.ts";

/** A retained address, or one of an earlier pod of the member, and the NICs of the demand that may have it. */
export interface Retained {
  readonly kept: Allocation;
  readonly picks: readonly Proposal[];
}

/** The API server's records for the members of a demand. */
export interface Records {
  /** The first in order is the best. */
  readonly retained: readonly Retained[];
  /** The pod's own, which the journal has as well. */
  readonly own: readonly Allocation[];
  /** Number of a claim that comes after those of its NICs: 1 is that of a member's first address. */
  readonly next: number;
}

/**
 * Reads one list of the API server for each workload of the demand. Throws CniError 11 where an address must be probed
 * and there is no NIC yet.
 */
export async function findRetained({ registry, poolCache, demand, cluster }: Search): Promise<Records> {
  const { claimant, nics, deadline } = demand;
  // The addresses of a migration's target are not for the pod from which the machine migrates to it.
  const target = claimant.isMigrationTarget === true ? claimant : undefined;
  const [own, found, last]: [Allocation[], Retained[], Retained[]] = [[], [], []];
  let highest = 0;
  for (const member of new Set(nics.flatMap(({ ifName }) => workloadOf(demand, ifName) ?? []))) {
    const ofMember = nics.filter(({ ifName }) => workloadOf(demand, ifName) === member);
    const all = (await cluster?.records.findRetained(member, target, deadline.signal)) ?? [];
    const ofNics = all.filter(({ ifName }) => ofMember.some((nic) => isFor(nic, ifName)));
    highest = Math.max(highest, ...ofNics.map((each) => numberOf(each) || Number(each.owner !== claimant.owner)));
    for (const kept of all.filter((each) => mayHave(demand, each))) {
      // An address of this pod itself is in the journal, or left of a claim that is being undone; another pod's row
      // there will give way.
      const row = kept.owner === "" ? undefined : await registry.findAddress(kept.space, kept.ip);
      const isHere = row?.owner === kept.owner;
      if (isHere && kept.owner === claimant.owner) own.push(kept);
      else (isHere && isUnused(row) ? last : found).push({ kept, picks: picksOf(poolCache, ofMember, kept) });
    }
  }
  // An address that the pod shares with its migration's target is the member's: nothing is better.
  const shared = own.filter(({ isInUse }) => isInUse === true);
  const others = found.filter(({ kept }) => !shared.some((each) => isSameNic(each, kept)));
  return { retained: [...others.toSorted((a, b) => compareRecords(a.kept, b.kept)), ...last], own, next: highest + 1 };
}

/** Returns whether an address retained for this interface, or for any, may be the NIC's. */
export function isFor(nic: NicDemand, ifName: string): boolean {
  return ifName === "" || ifName === nic.ifName;
}

/** The NICs that may have it: objects of older agents do not name their NIC. */
function picksOf(poolCache: PoolCache, nics: readonly NicDemand[], kept: Allocation): Proposal[] {
  return nics
    .filter((nic) => isFor(nic, kept.ifName))
    .flatMap((nic) => {
      const pool = findPool(poolCache, nic, kept);
      if (pool === undefined) return [];
      const probe = kept.quarantine === undefined ? {} : { needsProbe: true };
      const { ip, version: replaces } = kept;
      return [proposalOf(pool, { ifName: nic.ifName, ip, replaces, source: "retained", ...probe })];
    });
}

/** Returns the selected pool of the NIC that has the address. */
export function findPool(poolCache: PoolCache, nic: NicDemand, { space, ip }: Allocation): IpPool | undefined {
  const found = findPoolOfRequested(poolCache, nic, ip, space);
  return found.kind === "pool" ? found.pool : undefined;
}

/**
 * The member's address on a node that is lost, which may still answer for it: only a NIC that can probe may have it
 * (node-lost). Throws CniError 11 where there is no NIC yet: the ADD will probe, and another address claimed ahead of
 * it would be the member's for good.
 */
export function mayHave({ canProbe }: AddressDemand, { ip, workload, quarantine }: Allocation): boolean {
  if (quarantine === undefined) return true;
  if (canProbe !== undefined) return canProbe();
  const text = `Address ${formatIp(ip)} is retained for "${workload?.member}", whose node is lost, and must be probed before it is used; its ADD will do so`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}
