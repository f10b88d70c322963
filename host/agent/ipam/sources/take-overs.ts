/**
 * Which recorded addresses one search may take over, and which it has chosen: other ADDs of this node skip those
 * until {@link TakeOvers.end}.
 */
import type { NicDemand } from "../../../ipam/model.ts";
import { hashText } from "../../../ipam/pick.ts";
import { findWithholding } from "../../../ipam/withheld.ts";
import type { Allocation } from "../../../registry/registry.ts";
import type { IpPool } from "../../../resources/ip-pool.ts";
import type { Search } from "./source.ts";

/** Among how many of the longest released addresses a take-over chooses. */
export const TAKE_OVER_CHOICES = 8;

export class TakeOvers {
  readonly #search: Search;
  readonly #chosen: number[] = [];

  constructor(search: Search) {
    this.#search = search;
  }

  /**
   * Returns the addresses that the pool can hand out to the NIC, and that neither this search nor another ADD has
   * chosen.
   */
  usable(found: readonly Allocation[], pool: IpPool, nic: NicDemand): Allocation[] {
    const { poolCache, assignments } = this.#search;
    // An address that a workload's pod of this node has just released is about to be retained for the next one.
    const isRetained = ({ version, workload }: Allocation): boolean => version >= 0 && workload !== undefined;
    const isChosen = (each: Allocation): boolean =>
      poolCache.takeOvers.has(each.version) ||
      this.#chosen.includes(each.version) ||
      assignments.at(each) !== undefined;
    const mayHave = ({ ip }: Allocation): boolean =>
      poolCache.contains(pool.name, ip) && findWithholding(nic, pool, ip) === undefined;
    return found.filter((each) => mayHave(each) && !isChosen(each) && !isRetained(each));
  }

  /** Among the first few, so that concurrent searches do not all choose the same. */
  choose(ripe: readonly Allocation[]): Allocation | undefined {
    const { poolCache, demand, view } = this.#search;
    const choices = ripe.slice(0, TAKE_OVER_CHOICES);
    const chosen = choices[hashText(demand.claimant.owner) % Math.max(1, choices.length)];
    if (chosen === undefined) return undefined;
    this.#chosen.push(chosen.version);
    if (view === undefined) poolCache.takeOvers.add(chosen.version);
    return chosen;
  }

  end(): void {
    for (const version of this.#chosen) this.#search.poolCache.takeOvers.delete(version);
  }
}
