/**
 * Free addresses of the selected pools, as the pool cache knows them. When the cache is wrong, or finds none, it is
 * refreshed first: addresses whose cooldown is over are freed, and the live usage of the pools is read.
 */
import type { FamilyDemand, NicDemand } from "../../../ipam/model.ts";
import { hashText, type Picked, type Proposal, pickAddresses, poolsOf, proposalOf } from "../../../ipam/pick.ts";
import { poolsExhausted } from "../../../ipam/refusal.ts";
import { maySupply } from "../../../ipam/subnet-capacity.ts";
import type { ClaimOutcome } from "../../../registry/registry.ts";
import { memberKey } from "../../../resources/member.ts";
import { LIVE_USAGE_MISSES, LiveUsage } from "../live-usage.ts";
import type { AddressSource, ForeseenRows, Search, Setback } from "./source.ts";

export class FreeAddresses implements AddressSource {
  readonly #search: Search;
  /** Of pools that are not what the cache says. */
  #usage: LiveUsage | undefined;
  /** Reserved in the cache by the claim in progress. */
  #reserved: Proposal[] = [];
  #hasExpired = false;

  constructor(search: Search) {
    this.#search = search;
  }

  /** Completes the assigned addresses with free ones, and reserves all of them in the cache until {@link cancel}. */
  pick(nics: readonly NicDemand[]): Picked {
    const { poolCache, demand, assignments, view } = this.#search;
    // Pools may have changed while the search waited.
    for (const each of assignments.all)
      if (each.requested !== true && !poolCache.contains(each.pool, each.ip, true)) assignments.drop(each);
    const assigned = assignments.all;
    const misses = this.#usage?.misses ?? 0;
    // Nodes that look for free addresses from one place would meet again and again.
    const isSpread = misses >= LIVE_USAGE_MISSES;
    const seedText = isSpread ? `${demand.seedText}#${misses}` : demand.seedText;
    const foreseen =
      view === undefined ? [] : nics.flatMap(({ families }) => families.flatMap((each) => foreseenIn(each, view)));
    this.#reserved = [...foreseen, ...assigned].filter(({ pool: name, ip }) => {
      const pool = poolCache.find(name);
      return pool !== undefined && poolCache.takeExactly(pool, ip) === "claimed";
    });
    const pick = pickAddresses(poolCache, {
      nics,
      // A NIC with an address owner of its own starts at a place of its own (retention).
      seedOf: (ifName, family) => {
        const own = demand.workloads?.get(ifName);
        return hashText(`${own === undefined ? seedText : memberKey(own)}/${ifName}/${family}`);
      },
      assigned,
      randomize: (pool) => isSpread || demand.randomize?.(pool) === true,
    });
    if (pick.kind === "picked") this.#reserved.push(...pick.reserved);
    // An explanation keeps no address from an ADD.
    if (view !== undefined) this.cancel();
    return pick;
  }

  /**
   * Records the registry's answer in the cache: addresses in use are marked, reservations that came to nothing are
   * cancelled.
   */
  learn(outcome: ClaimOutcome): void {
    const inUse =
      outcome.kind === "bound"
        ? outcome.created
        : outcome.kind === "taken"
          ? [...outcome.by, ...(outcome.kept?.created ?? [])]
          : [];
    const { poolCache, view } = this.#search;
    for (const each of inUse) {
      if (view?.foreseen.includes(each) === true) continue;
      poolCache.mark(each.space, each.ip);
      if (each.version < 0) poolCache.noteRecorded(each);
    }
    this.cancel();
  }

  /** Cancels the reservations that have not become allocations. */
  cancel(): void {
    for (const { space, ip } of this.#reserved) this.#search.poolCache.cancel(space, ip);
    this.#reserved = [];
  }

  /** Throws PoolShortage for a pool that is full and will be waited for. */
  async next(setback: Setback): Promise<boolean> {
    if (setback.kind === "cooling") return false;
    if (setback.kind === "taken") {
      if (setback.by.some(({ version }) => version < 0)) await this.#live?.miss(setback.picked);
      return true;
    }
    const { shortage, pools } = setback;
    const { demand, registry } = this.#search;
    if (maySupply(shortage.demand) && demand.skipIfFull?.(shortage.demand) === true) {
      throw poolsExhausted({ nics: demand.nics, ...shortage, shortages: shortage.reasons });
    }
    if (!this.#hasExpired) {
      this.#hasExpired = true;
      await registry.expire();
      return true;
    }
    return (await this.#live?.refresh(pools)) === true;
  }

  get #live(): LiveUsage | undefined {
    const { registry, poolCache, cluster } = this.#search;
    this.#usage ??= cluster && new LiveUsage({ registry, poolCache, records: cluster.records });
    return this.#usage;
  }
}

/** Returns the foreseen addresses of the demand's pools, as if they were picked. */
function foreseenIn(demand: FamilyDemand, view: ForeseenRows): Proposal[] {
  return poolsOf(demand).flatMap((pool) => view.foreseen.map(({ ip }) => proposalOf(pool, { ifName: "", ip })));
}
