/** The pod's own addresses: those bound to its NICs need no claim, and cooling ones are its own again. */
import type { NicDemand } from "../../../ipam/model.ts";
import { proposalOf } from "../../../ipam/pick.ts";
import { findPoolOfRequested } from "../../../ipam/requested-ips.ts";
import { equalIp, type Family } from "../../../net/ip.ts";
import { isOfOtherNetwork } from "../../../registry/nic.ts";
import type { Allocation } from "../../../registry/registry.ts";
import { type AddressSource, isSameAddress, type Search, type Setback } from "./source.ts";

export class OwnAddresses implements AddressSource {
  readonly #search: Search;
  /** They were assigned, or lie outside the selected pools: the registry no longer reports them. */
  skipCooling = false;

  constructor(search: Search) {
    this.#search = search;
  }

  async next(setback: Setback): Promise<boolean> {
    if (setback.kind !== "cooling") return false;
    this.#assignCooling(setback.own);
    return true;
  }

  /**
   * The pod's own cooling address was claimed and undone, because of another one: its row has another version.
   * Returns whether that is so.
   */
  renew(holder: Allocation): boolean {
    const { assignments, demand } = this.#search;
    const assigned = assignments.at(holder);
    const isOwn = holder.version >= 0 && holder.state === "Cooling" && holder.owner === demand.claimant.owner;
    if (assigned?.source !== "own" || !isOwn || assigned.replaces === holder.version) return false;
    assignments.assign([{ ...assigned, replaces: holder.version }]);
    return true;
  }

  /** Returns the demand without the pod's present addresses: another NIC's full pool is no obstacle to this one. */
  async findMissing(): Promise<readonly NicDemand[]> {
    const { registry, demand } = this.#search;
    const { nics, claimant } = demand;
    const rows = await registry.findOwner(claimant.owner);
    const own = rows.filter((each) => !isOfOtherNetwork(each, claimant) || each.state === "Cooling");
    if (!this.skipCooling) this.#assignCooling(own.filter(({ state }) => state === "Cooling"));
    const bound = own.filter((each) => each.state === "Bound" && !this.#isUnwanted(each));
    const has = (ifName: string, family: Family): boolean =>
      bound.some((each) => each.ifName === ifName && each.ip.family === family);
    return nics.map((nic) => ({ ...nic, families: nic.families.filter(({ family }) => !has(nic.ifName, family)) }));
  }

  /** It was never on a NIC, and its NIC now requests another one. */
  #isUnwanted({ containerId, ifName, ip }: Allocation): boolean {
    const { requested, claimant } = this.#search.demand;
    if (containerId !== "" || ifName !== claimant.ifName) return false;
    return requested.some((request) => request.ip.family === ip.family && !equalIp(request.ip, ip));
  }

  /**
   * The newest of each NIC and family, if the selected pools contain it. Addresses that the pod's member had before
   * come first, those that no ADD was answered with last.
   */
  #assignCooling(own: readonly Allocation[]): void {
    const { poolCache, demand, assignments } = this.#search;
    const rankOf = ({ workload, isConfirmed }: Allocation): number =>
      (workload === undefined ? 0 : 2) + (isConfirmed === true ? 1 : 0);
    const sorted = [...own].sort((a, b) => rankOf(b) - rankOf(a) || b.sinceMs - a.sinceMs);
    this.skipCooling = true;
    for (const { space, ip, ifName, version } of sorted) {
      const nic = demand.nics.find((each) => each.ifName === ifName);
      const found = nic === undefined ? undefined : findPoolOfRequested(poolCache, nic, ip, space);
      if (found?.kind !== "pool") continue;
      const assigned = assignments.find({ ifName, ip });
      if (assigned !== undefined && !isSameAddress(assigned, { space, ip })) continue;
      if (assignments.all.some((other) => other.ifName !== ifName && isSameAddress(other, { space, ip }))) continue;
      assignments.assign([proposalOf(found.pool, { ...assigned, ifName, ip, replaces: version, source: "own" })]);
    }
  }
}
