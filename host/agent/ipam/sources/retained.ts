/**
 * Addresses that are retained for a member of a workload, or that an earlier pod of the member still has (retention).
 * The search for a free address starts where the member's last one was found, so most pods never need the lookup.
 */
import type { NicDemand } from "../../../ipam/model.ts";
import type { Proposal } from "../../../ipam/pick.ts";
import type { PoolCache } from "../../../ipam/pool-cache.ts";
import { equalIp, type Family } from "../../../net/ip.ts";
import { compareRecords, isReservation, numberOf } from "../../../registry/claims.ts";
import { UNKNOWN_CONTAINER } from "../../../registry/journal.ts";
import type { Allocation, Bound } from "../../../registry/registry.ts";
import { isSameMember } from "../../../resources/member.ts";
import { HAND_OVER_WAIT_MS, Timeout } from "../../request/add-deadline.ts";
import { awaitsClaim, awaitsNode, livesOn } from "../predecessor.ts";
import { findPool, findRetained, isFor, mayHave, type Records, type Retained } from "./find-retained.ts";
import type { OwnAddresses } from "./own.ts";
import {
  type AddressDemand,
  type AddressSource,
  isSameAddress,
  isSameNic,
  type Search,
  type Setback,
  workloadOf,
} from "./source.ts";

/** Interval at which an ADD checks whether another pod's claim of its retained address has ended: milliseconds. */
export const CLAIM_POLL_MS = 100;

type IsWanted = (pick: Proposal, retained: Retained) => boolean;

export class RetainedAddresses implements AddressSource {
  readonly #search: Search;
  readonly #own: OwnAddresses;
  /** Undefined until they are looked up, and when one of them has changed since. */
  #found: Records | undefined;
  /** Versions of the addresses that were found and that the pod cannot have. */
  readonly #refused = new Set<Proposal["replaces"]>();
  /** For other nodes that take addresses off the NICs of earlier pods. */
  #handOver: Timeout | undefined;

  constructor(search: Search, own: OwnAddresses) {
    this.#search = search;
    this.#own = own;
  }

  /** As in {@link Claim.number}: undefined while the read records do not count any more. */
  get nextNumber(): number | undefined {
    return this.#found?.next;
  }

  /** They are looked up before anything is taken over from other owners. */
  async next(setback: Setback): Promise<boolean> {
    if (setback.kind === "cooling" || this.#found !== undefined) return false;
    if (setback.kind === "taken" && !setback.by.some(({ version }) => version < 0)) return false;
    return this.#assignFound(setback.nics);
  }

  /**
   * Looks them up before anything is claimed, because the pod gets nothing else. Returns whether they and its own
   * addresses are all that the NICs lack.
   */
  async cover(nics: readonly NicDemand[]): Promise<boolean> {
    const { assignments } = this.#search;
    await this.#assignFound(nics);
    const isOwn = (pick: Proposal): boolean =>
      pick.source === "own" || this.#isFound(({ kept }) => isSameAddress(pick, kept));
    const lacks = (ifName: string, family: Family): boolean =>
      !assignments.all.some((each) => each.ifName === ifName && each.ip.family === family && isOwn(each));
    return !nics.some(({ ifName, families }) => families.some(({ family }) => lacks(ifName, family)));
  }

  async #look(): Promise<Records> {
    this.#found = await findRetained(this.#search);
    return this.#found;
  }

  #isFound(isWanted: (each: Retained) => boolean): boolean {
    return this.#found?.retained.some(isWanted) === true;
  }

  /** Returns whether addresses were found that the NICs lack. */
  async #assignFound(nics: readonly NicDemand[]): Promise<boolean> {
    const { assignments } = this.#search;
    const { own } = await this.#look();
    const isMissing: IsWanted = ({ ifName, ip }) =>
      nics.some((nic) => nic.ifName === ifName && nic.families.some(({ family }) => family === ip.family));
    // An address that the pod had without a record was never the member's.
    const isOpen = (to?: Proposal): boolean =>
      to === undefined || (to.source === "own" && !own.some((row) => isSameAddress(to, row)));
    const chosen = this.#choose((pick, each) => isMissing(pick, each) && isOpen(assignments.find(pick)));
    assignments.assign(chosen);
    // Another NIC may be short of an address that a NIC of the pod has no use for.
    if (chosen.length === 0) await this.#releaseSurplus([]);
    return chosen.length > 0;
  }

  /**
   * Another owner has a picked address: takes it over from an earlier pod of the member, or waits until its node has
   * released it. Returns false if retention says nothing about the holder. Throws CniError 11 while the earlier pod
   * keeps the address.
   */
  async replace(holder: Allocation, picked: readonly Proposal[]): Promise<boolean> {
    const { demand, assignments } = this.#search;
    if (holder.predecessorNode !== undefined) {
      await this.#awaitNode(holder);
      return true;
    }
    // Each NIC retains its own: the address of another NIC of the member belongs to another owner.
    const pick = picked.find(
      (each) => isSameAddress(each, holder) && (holder.ifName === "" || holder.ifName === each.ifName),
    );
    if (pick !== undefined && isOfOtherPod(demand, holder)) {
      // The holder is on this node or a lost one: the member's live pod has more right to the address.
      if (holder.version >= 0 || holder.quarantine !== undefined) {
        await this.#succeed(holder, pick);
        return true;
      }
      // It is alive on another node, and the member gets no second address meanwhile.
      if (holder.state === "Bound") throw livesOn(holder);
    }
    const assigned = assignments.at(holder);
    if (assigned === undefined) return true;
    // Addresses of the pod itself are retained for it, too.
    const isMembers =
      assigned.source === "retained" ||
      (assigned.source === "own" && workloadOf(demand, assigned.ifName) !== undefined);
    // A claim of another pod of this node is under way.
    if (isMembers && holder.version >= 0 && holder.state === "Bound" && holder.isConfirmed !== true) {
      await this.#awaitClaim(holder);
      return true;
    }
    // This node's row is older than the object: the member has got the address on another node.
    const isOld = holder.version >= 0 && holder.state === "Cooling" && assigned.replaces !== holder.version;
    if (!isOld || !this.#isFound(({ kept }) => isSameAddress(kept, holder))) {
      if (isMembers) this.#forget(assigned);
      return false;
    }
    assignments.assign([{ ...assigned, replaces: holder.version }]);
    return true;
  }

  /**
   * Whether the claimed addresses are undone in favour of retained ones. If not, surplus retained ones are released.
   * Rejects, with the claim undone, when the lookup fails.
   */
  async prefer(bound: Bound, picked: readonly Proposal[]): Promise<boolean> {
    const { registry, assignments, demand } = this.#search;
    const { held, created, open = [] } = bound;
    try {
      const isUnread = demand.claimant.isMigrationTarget === true || open.some((row) => numberOf(row) === 0);
      if (this.#found === undefined && ((open.length > 0 && isUnread) || this.#isMovedByRequest(created)))
        await this.#look();
      // An address that was met by chance may be the lesser of two.
      const wanted = [...open, ...created].filter((row) => !this.#isRequested(row));
      const isOther = ({ kept }: Retained): boolean => ![...held, ...created].some((own) => isSameAddress(own, kept));
      const isBetter = (pick: Proposal, { kept }: Retained): boolean =>
        wanted.some((row) => isSameNic(row, pick) && compareRecords(kept, this.#recordOf(row)) < 0);
      const chosen = this.#choose((pick, each) => isOther(each) && isBetter(pick, each));
      if (chosen.length > 0) {
        // A claim is undone as a whole; the rest of it is claimed again, and the member's addresses in it are retained
        // again.
        const rest = created.flatMap(({ workload, ...row }) => {
          const found = picked.filter((each) => isSameAddress(each, row)).map(({ replaces: _, ...each }) => each);
          return workload === undefined ? found : found.map((each): Proposal => ({ ...each, source: "retained" }));
        });
        assignments.assign(rest);
        assignments.assign(chosen);
        await registry.undo(givenBack(created, open, chosen));
        this.#own.skipCooling = false;
        return true;
      }
      await this.#releaseSurplus([...held, ...created]);
      return false;
    } catch (error) {
      await registry.undo(created);
      throw error;
    }
  }

  /** Returns the row as the API server has it, if that was read. */
  #recordOf(row: Allocation): Allocation {
    return this.#found?.own.find((each) => isSameAddress(each, row)) ?? row;
  }

  /**
   * The pod requested an address that was retained: another one may be retained for the NIC. An IPAMClaim requests
   * its own address at each start of a machine, which is no reason for another lookup.
   */
  #isMovedByRequest(created: readonly Allocation[]): boolean {
    const requests = this.#search.demand.requested.filter(({ source }) => !source.startsWith("IPAMClaim "));
    return requests.some(({ ip }) => created.some((row) => equalIp(row.ip, ip)));
  }

  #isRequested({ ifName, ip }: Allocation): boolean {
    const { claimant, requested } = this.#search.demand;
    return ifName === claimant.ifName && requested.some((request) => equalIp(request.ip, ip));
  }

  #choose(isWanted: IsWanted): readonly Proposal[] {
    const { poolCache } = this.#search;
    const usable = (this.#found?.retained ?? []).filter(({ kept }) => !this.#refused.has(kept.version));
    const isThere = ({ pool, ip }: Proposal): boolean => poolCache.contains(pool, ip, true);
    return choosePicks(usable, (pick, each) => isWanted(pick, each) && isThere(pick));
  }

  /** The retained addresses cannot be claimed; looks them up again. The pod may have given up its own for it. */
  #forget({ replaces }: Pick<Proposal, "replaces">): void {
    this.#found = undefined;
    this.#refused.add(replaces);
    this.#own.skipCooling = false;
  }

  /** Releases retained addresses that the pod does not use, now that its NICs have these and earlier ones. */
  async #releaseSurplus(claimed: readonly Allocation[]): Promise<void> {
    const { demand, registry, cluster, poolCache } = this.#search;
    // An address that another writer has changed meanwhile may be the member's again.
    const isUnchanged = ({ kept }: Retained): boolean => kept.state === "Kept" && !this.#refused.has(kept.version);
    const retained = (this.#found?.retained ?? []).filter(isUnchanged);
    if (retained.length === 0) return;
    const own = await registry.findOwner(demand.claimant.owner);
    // The ADD of a NIC whose address the journal has lost and taken in tells whether it is the member's, at its end.
    const isMembers = (row: Allocation): boolean =>
      row.state === "Bound" &&
      row.isConfirmed === true &&
      row.containerId !== UNKNOWN_CONTAINER &&
      row.claim?.number !== 0;
    const rows = [...claimed, ...own.filter(isMembers)];
    const surplus = surplusOf(retained, poolCache, demand, rows);
    if (surplus.length > 0) await cluster?.records.releaseRetained(surplus);
  }

  /**
   * The agent of the earlier pod's node takes the address off its NIC, which takes a moment. Rejects with CniError 11
   * when it does not.
   */
  async #awaitNode(holder: Allocation): Promise<void> {
    const { demand, cluster } = this.#search;
    this.#handOver ??= new Timeout(demand.deadline.clock, HAND_OVER_WAIT_MS);
    const { leftMs } = this.#handOver;
    if (leftMs <= 0 || !(await cluster?.records.awaitChange(holder, leftMs, demand.deadline.signal)))
      throw awaitsNode(holder);
    this.#found = undefined;
  }

  /**
   * Another pod of this node tries to claim the address, which is retained for this one: the API server will refuse
   * that. Rejects with CniError 11 when it takes too long.
   */
  async #awaitClaim(holder: Allocation): Promise<void> {
    const { deadline } = this.#search.demand;
    this.#handOver ??= new Timeout(deadline.clock, HAND_OVER_WAIT_MS);
    if (this.#handOver.isOver) throw awaitsClaim(holder);
    await deadline.clock.sleep(CLAIM_POLL_MS, deadline.signal);
  }

  /** An earlier pod of the member has the picked address on this node, or just had it; or on a lost node. */
  async #succeed(former: Allocation, { space, ip, prefixLength, pool, ifName }: Proposal): Promise<void> {
    const { demand, assignments, cluster } = this.#search;
    const pick = { space, ip, prefixLength, pool, ifName, source: "retained" } as const;
    if (former.version < 0) {
      assignments.drop(former);
      if (mayHave(demand, former)) assignments.assign([{ ...pick, replaces: former.version, needsProbe: true }]);
      else this.#forget({ replaces: former.version });
      return;
    }
    const cooling = former.state === "Bound" ? await cluster?.evictPredecessor(former, demand.claimant) : former;
    if (cooling?.state === "Cooling") assignments.assign([{ ...pick, replaces: cooling.version }]);
  }
}

/**
 * Returns the rows that give way to the chosen ones, and with them the rest of the claim. A row that was claimed before
 * the member's others were read is not retained.
 */
function givenBack(
  created: readonly Allocation[],
  open: readonly Allocation[],
  chosen: readonly Proposal[],
): readonly Allocation[] {
  const replaced = open.filter((row) => chosen.some((pick) => isSameNic(pick, row)));
  const others = created.filter((row) => !replaced.some((each) => isSameAddress(each, row)));
  return [...others, ...replaced.map((row) => (numberOf(row) === 0 ? { ...row, workload: undefined } : row))];
}

/** Returns for each wanted NIC and family the first address that it may have. */
function choosePicks(retained: readonly Retained[], isWanted: IsWanted): readonly Proposal[] {
  const chosen: Proposal[] = [];
  const isFree = (pick: Proposal): boolean =>
    !chosen.some((each) => isSameNic(each, pick) || isSameAddress(each, pick));
  for (const each of retained) {
    const pick = each.picks.find((one) => isWanted(one, each) && isFree(one));
    if (pick !== undefined) chosen.push(pick);
  }
  return chosen;
}

/**
 * Returns the retained addresses that are of no use to the member now that it has `rows`: retained for a NIC and family
 * that has one of them; or in no selected pool, unless the NIC still lacks an address of the family: the pool that has
 * it may only be renamed, or generated, of which this agent has not been told. Then it is released only to another NIC
 * of the demand, and where the namespace may have no other address beside it. A NIC outside the demand may want its
 * retained address. An address that another machine claims stays retained, and so does one that was on no NIC: the
 * workload names it.
 */
function surplusOf(
  retained: readonly Retained[],
  poolCache: PoolCache,
  { nics, coversPod = false, limits }: Pick<AddressDemand, "nics" | "coversPod" | "limits">,
  rows: readonly Allocation[],
): readonly Allocation[] {
  const isDemanded = (ifName: string): boolean => coversPod || nics.some((nic) => nic.ifName === ifName);
  const isDue = ({ ifName, ip }: Allocation): boolean =>
    limits?.full === undefined &&
    nics.some((nic) => isFor(nic, ifName) && nic.families.some(({ family }) => family === ip.family));
  const isForOther = (kept: Allocation): boolean =>
    nics.some((nic) => !isFor(nic, kept.ifName) && findPool(poolCache, nic, kept) !== undefined);
  const isSurplus = ({ kept, picks }: Retained): boolean => {
    const isUsed = rows.some((row) => isSameAddress(row, kept)) || poolCache.occupied.find(kept.ip) !== undefined;
    if (isUsed || isReservation(kept)) return false;
    if (rows.some((row) => isSameNic(row, kept))) return true;
    return picks.length === 0 && isDemanded(kept.ifName) && (!isDue(kept) || isForOther(kept));
  };
  return retained.filter(isSurplus).map(({ kept }) => kept);
}

/** Returns whether the holder is another pod of the same member, or the same one on another machine. */
function isOfOtherPod(demand: AddressDemand, { owner, ifName, workload, quarantine, version }: Allocation): boolean {
  const isOther = owner !== demand.claimant.owner || (quarantine !== undefined && version < 0);
  return isOther && isSameMember(workloadOf(demand, ifName), workload);
}
