/**
 * Addresses that have been in quarantine for long: the last resort, for a NIC on which they can be probed before they
 * are used (conflict).
 */
import { proposalOf } from "../../../ipam/pick.ts";
import { type AddressSource, type Search, type Setback, spansOf } from "./source.ts";
import { TAKE_OVER_CHOICES, type TakeOvers } from "./take-overs.ts";

/** Time in quarantine after which an address may be probed and handed out when nothing else is free: milliseconds. */
export const QUARANTINE_MAX_MS = 3_600_000;

export class QuarantinedAddresses implements AddressSource {
  readonly #search: Search;
  readonly #takeOvers: TakeOvers;

  constructor(search: Search, takeOvers: TakeOvers) {
    this.#search = search;
    this.#takeOvers = takeOvers;
  }

  async next(setback: Setback): Promise<boolean> {
    if (setback.kind !== "short") return false;
    const { registry, poolCache, demand, assignments } = this.#search;
    const { ifName } = setback.shortage.nic;
    if (ifName !== demand.claimant.ifName || demand.canProbe === undefined) return false;
    for (const pool of setback.pools) {
      const found = await registry.findQuarantined({
        spans: spansOf(pool),
        untilMs: demand.deadline.nowMs() - QUARANTINE_MAX_MS,
        limit: poolCache.takeOvers.size + TAKE_OVER_CHOICES * 8,
      });
      const usable = this.#takeOvers.usable(found, pool, setback.shortage.nic);
      const chosen = usable.length > 0 && demand.canProbe() ? this.#takeOvers.choose(usable) : undefined;
      if (chosen === undefined) continue;
      const { ip, version: replaces } = chosen;
      assignments.assign([proposalOf(pool, { ifName, ip, replaces, source: "quarantined" })]);
      return true;
    }
    return false;
  }
}
