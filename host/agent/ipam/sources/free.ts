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

/** Completes the assigned addresses with free ones. The caller cancels the reservations after the claim. */
export function pickFree(
  { poolCache, demand, assignments, view }: Search,
  nics: readonly NicDemand[],
  misses = 0,
): Picked {
  // Pools may have changed while the search waited.
  for (const each of assignments.all)
    if (each.requested !== true && !poolCache.contains(each.pool, each.ip, true)) assignments.drop(each);
  const assigned = assignments.all;
  // Nodes that look for free addresses from one place would meet again and again.
  const isSpread = misses >= LIVE_USAGE_MISSES;
  const seedText = isSpread ? `${demand.seedText}#${misses}` : demand.seedText;
  const foreseen =
    view === undefined ? [] : nics.flatMap(({ families }) => families.flatMap((each) => foreseenIn(each, view)));
  const reserved = [...foreseen, ...assigned].filter(({ pool: name, ip }) => {
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
  reserved.push(...pick.reserved);
  if (view === undefined) return { ...pick, reserved };
  // An explanation keeps no address from an ADD.
  poolCache.cancel(reserved);
  return { ...pick, reserved: [] };
}

/** Marks the addresses that are in use by the registry's answer. */
export function learn({ poolCache, view }: Search, outcome: ClaimOutcome): void {
  if (outcome.kind === "cooling") return;
  const inUse = outcome.kind === "bound" ? outcome.created : [...outcome.by, ...(outcome.kept?.created ?? [])];
  for (const each of inUse) {
    if (view?.foreseen.includes(each) === true) continue;
    poolCache.mark(each.space, each.ip);
    if (each.version < 0) poolCache.noteRecorded(each);
  }
}

/** Refreshes the cache when it is wrong, or has no free address. */
export class FreeAddresses implements AddressSource {
  readonly #search: Search;
  /** Of pools that are not what the cache says; undefined if none was met. */
  usage: LiveUsage | undefined;
  #hasExpired = false;

  constructor(search: Search) {
    this.#search = search;
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
    this.usage ??= cluster && new LiveUsage({ registry, poolCache, records: cluster.records });
    return this.usage;
  }
}

/** Returns the foreseen addresses of the demand's pools, as if they were picked. */
function foreseenIn(demand: FamilyDemand, view: ForeseenRows): Proposal[] {
  return poolsOf(demand).flatMap((pool) => view.foreseen.map(({ ip }) => proposalOf(pool, { ifName: "", ip })));
}
