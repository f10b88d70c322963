/**
 * Looks up what is retained for the members of a demand, or what earlier pods of them have, and says which of several
 * comes first (retention).
 */
import { CniError, ErrorCode } from "../../../cni/error.ts";
import type { NicDemand } from "../../../ipam/model.ts";
import type { Picked } from "../../../ipam/pick.ts";
import type { PoolCache } from "../../../ipam/pool-cache.ts";
import { findPoolOfRequested } from "../../../ipam/requested-ips.ts";
import { compareText } from "../../../lib/order.ts";
import { formatIp } from "../../../net/ip.ts";
import type { Allocation } from "../../../registry/registry.ts";
import { type AddressDemand, isAt, isSameNic, type Search, workloadOf } from "./source.ts";

/** A retained address, or one that an earlier pod of the member has, and the NICs of the demand that may have it. */
export interface Retained {
  readonly kept: Allocation;
  readonly picks: readonly Picked[];
  /**
   * The pod's own according to the API server alone: an earlier life of the agent has claimed it, and its journal is
   * lost.
   */
  readonly isOrphaned: boolean;
  /**
   * Bound, and written after the object of an address that the NIC has: if it is an earlier pod's, left of a claim
   * that was undone.
   */
  readonly isLate: boolean;
  /**
   * Fresh, and its object was created after that of a fresh address that the NIC has: another claim's that was not
   * answered.
   */
  readonly isYounger: boolean;
}

/**
 * The first in order is the best. `picked`: what a claim has got already. Reads one list of the API server for each
 * workload of the demand. Throws CniError 11 where an address must be probed and there is no NIC yet.
 */
export async function findRetained(
  { registry, poolCache, demand }: Search,
  picked: readonly Picked[] = [],
): Promise<readonly Retained[]> {
  const { claimant, nics, deadline } = demand;
  // The addresses of a migration's target are not for the pod from which the machine migrates to it.
  const target = claimant.isMigrationTarget === true ? claimant : undefined;
  const found: Retained[] = [];
  const shared: Allocation[] = [];
  for (const member of new Set(nics.flatMap(({ ifName }) => workloadOf(demand, ifName) ?? []))) {
    const ofMember = nics.filter(({ ifName }) => workloadOf(demand, ifName) === member);
    const all = await registry.findRetained(member, target, deadline.signal);
    const own = all.filter(({ owner }) => owner === claimant.owner);
    for (const kept of all.filter((each) => mayHave(demand, each))) {
      const isOwn = own.includes(kept);
      // An address of this pod itself is in the journal, or left of a claim that is being undone; another pod's row
      // there will give way.
      if (isOwn && (await registry.findAddress(kept.space, kept.ip))?.owner === kept.owner) {
        if (kept.isInUse === true) shared.push(kept);
        continue;
      }
      const had = own.filter((each) => isSameNic(each, kept));
      const isLate = kept.state === "Bound" && had.some((each) => each.version > kept.version);
      const isFirst = (each: Allocation): boolean =>
        isFresh(each) && isCreatedBefore(each, kept) && !isTakenOver(each, picked);
      const isYounger = isFresh(kept) && had.some(isFirst);
      found.push({ kept, picks: picksOf(poolCache, ofMember, kept), isOrphaned: isOwn, isLate, isYounger });
    }
  }
  // An address that the pod shares with the one that migrates to it is the member's: nothing is better.
  return inOrder(found.filter(({ kept }) => !shared.some((each) => isSameNic(each, kept))));
}

/**
 * Sorts the addresses. Those of a live pod of a migrating machine come first, orphaned ones last; fresh ones follow
 * those that the member had before, the first created first. Of equal ones, the retained come first, or those that
 * were retained until an earlier pod took them over, the last one before others. Then follow the addresses of earlier
 * pods, the oldest before others, which are left of claims that are being undone; of one pod's addresses the one
 * whose object was created first, since taking over a retained address is a later write to an older object.
 */
function inOrder(found: readonly Retained[]): readonly Retained[] {
  // Versions of objects are negative.
  const ageOf = ({ kept }: Retained): number =>
    Math.min(...found.flatMap(({ kept: each }) => (isOfSamePod(each, kept) ? [-each.version] : [])));
  const allKept = found.flatMap(({ kept }) => (kept.state === "Kept" ? [kept] : []));
  const isKept = ({ kept }: Retained): boolean => kept.state === "Kept" || wasKept(kept, allKept);
  const rankOf = (each: Retained): number => (isKept(each) ? each.kept.version : ageOf(each));
  return found.toSorted(
    (a, b) =>
      Number(b.kept.isInUse === true) - Number(a.kept.isInUse === true) ||
      Number(a.isOrphaned) - Number(b.isOrphaned) ||
      Number(isFresh(a.kept)) - Number(isFresh(b.kept)) ||
      compareFresh(a.kept, b.kept) ||
      rankOf(a) - rankOf(b) ||
      compareText(a.kept.createdAt ?? "", b.kept.createdAt ?? "") ||
      b.kept.version - a.kept.version,
  );
}

/**
 * Returns whether an earlier pod has taken the address over after all that is retained for the NIC, which were
 * claimed in its place meanwhile: its object is older than theirs, and was written later.
 */
function wasKept(earlier: Allocation, allKept: readonly Allocation[]): boolean {
  const others = allKept.filter((kept) => isSameNic(kept, earlier));
  const { createdAt } = earlier;
  if (earlier.state !== "Bound" || createdAt === undefined || others.length === 0) return false;
  return others.every((kept) => createdAt < (kept.createdAt ?? "") && earlier.version < kept.version);
}

export function isFresh({ workload }: Allocation): boolean {
  return workload?.isFresh === true;
}

/**
 * This holds for any holders: before the later one can have been answered, its ADD has read a list with the earlier
 * one, and preferred that.
 */
function compareFresh(a: Allocation, b: Allocation): number {
  return isFresh(a) && isFresh(b) ? compareText(a.createdAt ?? "", b.createdAt ?? "") : 0;
}

/** Returns whether the claim has taken the address over from another owner: its object is older than the claim. */
function isTakenOver(own: Allocation, picked: readonly Picked[]): boolean {
  const isOthers = ({ replaces, source }: Picked): boolean =>
    replaces !== undefined && source !== "retained" && source !== "own";
  return picked.some((pick) => isAt(pick, own) && isOthers(pick));
}

function isCreatedBefore({ createdAt }: Allocation, other: Allocation): boolean {
  return createdAt !== undefined && createdAt < (other.createdAt ?? "");
}

/** Returns whether one NIC of an earlier pod has both: one of them is left of a claim that is being undone. */
function isOfSamePod(one: Allocation, other: Allocation): boolean {
  return one === other || (one.state === "Bound" && one.owner === other.owner && isSameNic(one, other));
}

/** Returns whether what is retained for this interface, or for any, may be the NIC's. */
export function isFor(nic: NicDemand, ifName: string): boolean {
  return ifName === "" || ifName === nic.ifName;
}

/** The NICs that may have it: an object that was retained by an older agent does not say of which NIC it was. */
function picksOf(poolCache: PoolCache, nics: readonly NicDemand[], kept: Allocation): Picked[] {
  return nics
    .filter((nic) => isFor(nic, kept.ifName))
    .flatMap((nic) => {
      const pool = findPool(poolCache, nic, kept);
      if (pool === undefined) return [];
      const probe = kept.quarantine === undefined ? {} : { needsProbe: true };
      return [{ ifName: nic.ifName, pool, ip: kept.ip, replaces: kept.version, source: "retained", ...probe }];
    });
}

/** Returns the selected pool of the NIC that has the address. */
export function findPool(poolCache: PoolCache, nic: NicDemand, { space, ip }: Allocation): Picked["pool"] | undefined {
  const found = findPoolOfRequested(poolCache, nic, ip);
  return found.kind === "pool" && found.pool.spec.addressSpace === space ? found.pool : undefined;
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
