/**
 * Refreshes the pool cache from the live usage of a pool: before the pool is treated as full, and after misses
 * (exhaustion), in one search again only after twice as many. For a large pool the usage summary is read first, which
 * is small. Only in a cluster: the embedded registry is always up to date.
 */

import type { Proposal } from "../../ipam/pick.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { firstIp, lastIp } from "../../net/prefix.ts";
import { type AddressSpan, type Registry, RegistryError } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { SharedRecords } from "./cluster-ipam.ts";

/** Misses in a row (picks that were others') after which a small pool's live usage is listed (exhaustion). */
export const LIVE_USAGE_MISSES = 2;

/** Largest small pool in that sense: addresses. For larger ones the list is long, and a miss says little. */
const SMALL_POOL_ADDRESSES = 4_096;

/**
 * The same for larger pools, counted from the reading of the usage summary. So a half full pool is hardly ever
 * listed; one that is nearly full is if it has no current summary.
 */
const LIVE_USAGE_MISSES_LARGE = 8;

interface LiveUsageDeps {
  readonly registry: Pick<Registry, "readUsed">;
  readonly records: Pick<SharedRecords, "listUsed" | "readUsageSummary">;
  readonly poolCache: PoolCache;
  /** Only to show the known usage: an estimate is better than nothing. Default: no search is to rely on it. */
  readonly keepsEstimates?: true;
}

export class LiveUsage {
  readonly #deps: LiveUsageDeps;
  /** Pools whose addresses were listed, by name: the misses until then. */
  readonly #listed = new Map<string, number>();
  /** Pools whose usage summary was read, by name: the misses until then if there was one, else 0. */
  readonly #summarized = new Map<string, number>();
  #misses = 0;

  constructor(deps: LiveUsageDeps) {
    this.#deps = deps;
  }

  /** Number of picked addresses in a row that belonged to others. */
  get misses(): number {
    return this.#misses;
  }

  /** Returns whether the usage of any of the pools was refreshed, so that picking again is worth it. */
  async refresh(pools: readonly IpPool[]): Promise<boolean> {
    let isRefreshed = false;
    for (const pool of pools) {
      if (this.#isListed(pool)) continue;
      isRefreshed = (await this.#readSummary(pool)) || (await this.#list(pool)) || isRefreshed;
    }
    return isRefreshed;
  }

  /**
   * Another owner has a picked address. After LIVE_USAGE_MISSES the small pools among these are listed, and the
   * summaries of the large ones are read; after LIVE_USAGE_MISSES_LARGE more the large ones are listed as well.
   */
  async miss(picked: readonly Proposal[]): Promise<void> {
    this.#misses++;
    if (this.#misses < LIVE_USAGE_MISSES) return;
    const pools = picked.flatMap(({ pool }) => this.#deps.poolCache.find(pool) ?? []);
    try {
      for (const pool of pools) await this.#readSummary(pool);
      await this.refresh(
        pools.filter((pool) => this.#isSmall(pool) || this.#missesOf(pool) >= LIVE_USAGE_MISSES_LARGE),
      );
    } catch (error) {
      // The list only spares misses: without it the search goes on by trying.
      if (!(error instanceof RegistryError)) throw error;
    }
  }

  /** Since the pool's usage summary was read. */
  #missesOf({ name }: IpPool): number {
    return this.#misses - (this.#summarized.get(name) ?? 0);
  }

  /** Once for each large pool. Returns whether the pool cache was refreshed. */
  async #readSummary(pool: IpPool): Promise<boolean> {
    if (this.#isSmall(pool) || this.#summarized.has(pool.name)) return false;
    this.#summarized.set(pool.name, 0);
    const { registry, records, poolCache } = this.#deps;
    const { bitmap, rangesHash = "" } = (await records.readUsageSummary(pool.name)) ?? {};
    if (bitmap === undefined) return false;
    const own = await registry.readUsed(spanOf(pool));
    if (!poolCache.loadEstimate(pool, { rangesHash, bitmap }, own)) return false;
    this.#summarized.set(pool.name, this.#misses);
    return true;
  }

  /** Not if the pool has changed since: one of its addresses is recorded for another pool, or misses have doubled. */
  #isListed(pool: IpPool): boolean {
    return [pool.name, ...this.#otherNamesOf(pool)].every((name) => {
      const misses = this.#listed.get(name);
      return misses !== undefined && this.#misses < Math.max(LIVE_USAGE_MISSES, 2 * misses);
    });
  }

  /** Returns the names of pools that are gone, or that had addresses which the pool or its neighbours have now. */
  #otherNamesOf(pool: IpPool): readonly string[] {
    const { poolCache } = this.#deps;
    const neighbours = poolCache.neighboursOf(pool);
    const names = new Set(neighbours.flatMap((each) => [...poolCache.otherNamesOf(each)]));
    for (const { name } of neighbours) names.delete(name);
    return [...names];
  }

  async #list(pool: IpPool): Promise<boolean> {
    const { records, poolCache } = this.#deps;
    const neighbours = poolCache.neighboursOf(pool);
    const names = neighbours.map(({ name }) => name);
    const others = this.#otherNamesOf(pool);
    for (const name of [pool.name, ...names, ...others]) this.#listed.set(name, this.#misses);
    const used = await records.listUsed(spanOf(pool), names, others);
    if (used === undefined) return this.#deps.keepsEstimates !== true && this.#dropEstimates(neighbours);
    for (const neighbour of neighbours) poolCache.replaceUsed(neighbour, used);
    return true;
  }

  /**
   * The usage cannot be listed, and an estimate is no reason to refuse: the cache is reset to this node's knowledge,
   * and the search continues by trying.
   */
  async #dropEstimates(pools: readonly IpPool[]): Promise<boolean> {
    const { registry, poolCache } = this.#deps;
    const estimated = pools.filter(({ name }) => poolCache.isEstimate(name));
    for (const pool of estimated) poolCache.replaceUsed(pool, await registry.readUsed(spanOf(pool)));
    return estimated.length > 0;
  }

  #isSmall({ name }: IpPool): boolean {
    const { total } = this.#deps.poolCache.counts(name) ?? { total: 0n };
    return total <= BigInt(SMALL_POOL_ADDRESSES);
  }
}

/** Returns all addresses of the pool's subnet: another pool's may be in use as well. */
export function spanOf({ spec: { addressSpace: space, family, subnet } }: IpPool): AddressSpan {
  return { space, family, first: firstIp(subnet).value, last: lastIp(subnet).value };
}
