/**
 * Free addresses of the selected pools that the pool cache did not know. It is refreshed when it is wrong, or finds
 * none: addresses whose cooldown is over are freed, and the live usage of the pools is read.
 */
import { poolsExhausted } from "../../../ipam/refusal.ts";
import { maySupply } from "../../../ipam/subnet-capacity.ts";
import { LiveUsage } from "../live-usage.ts";
import type { AddressSource, Search, Setback } from "./source.ts";

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
      throw poolsExhausted({ nics: demand.nics, ...shortage });
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
