/**
 * What the pool cache has not heard of: the registry is asked once per search what anybody has in a pool, before the pool counts as full and
 * after misses (allocation rule 11); of a large pool first what somebody has counted, which is one small answer in place of a long one. The embedded
 * registry has told everything already, and costs nothing here.
 * Effects: reads the registry; replaces what the pool cache believes.
 */

import type { Picked } from "../../ipam/pick.ts";
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { firstIp, lastIp } from "../../net/prefix.ts";
import { type AddressSpan, type Registry, RegistryError } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { hashOfRanges, ordinalsOf, packMarked } from "../../resources/usage/ordinals.ts";

/** After so many addresses in a row that others had, one asks what is in use in a small pool (allocation rule 11). @limit */
export const SURVEY_MISSES = 2;

/** Pools of up to so many addresses are small in that sense; for larger ones the answer is long, and a miss says little. @limit */
export const SURVEY_POOL_ADDRESSES = 4_096;

/**
 * After so many the same is asked for a larger pool, counted from what its usage object told, which is asked for after SURVEY_MISSES: one that is
 * half full is hardly ever asked for, one that is nearly full is when nobody counts along.
 * @limit
 */
export const SURVEY_MISSES_LARGE = 8;

export interface LiveUsageDeps {
  readonly registry: Pick<Registry, "listUsed" | "readUsageSummary" | "readUsed">;
  readonly poolCache: PoolCache;
}

export class LiveUsage {
  readonly #tools: LiveUsageDeps;
  /** Names of pools that were asked for. */
  readonly #asked = new Set<string>();
  /** Names of pools whose usage was asked for: the misses until then if it told something, else 0. */
  readonly #glimpsed = new Map<string, number>();
  #misses = 0;

  constructor(tools: LiveUsageDeps) {
    this.#tools = tools;
  }

  /** Of addresses in a row that others had. */
  get misses(): number {
    return this.#misses;
  }

  /** True when the pool cache was told what is in use in any of the pools: to look again is worth it. */
  async ask(pools: readonly IpPool[]): Promise<boolean> {
    let isTold = false;
    for (const pool of pools) {
      if (this.#asked.has(pool.name)) continue;
      isTold = (await this.#glimpse(pool)) || (await this.#ask(pool)) || isTold;
    }
    return isTold;
  }

  /**
   * Somebody had what was picked: after SURVEY_MISSES the small pools among these are asked for, and the usage of the large ones; after
   * SURVEY_MISSES_LARGE more the large ones, too.
   */
  async miss(picked: readonly Picked[]): Promise<void> {
    this.#misses++;
    if (this.#misses < SURVEY_MISSES) return;
    const pools = picked.map(({ pool }) => pool);
    try {
      for (const pool of pools) await this.#glimpse(pool);
      await this.ask(pools.filter((pool) => this.#isSmall(pool) || this.#missesOf(pool) >= SURVEY_MISSES_LARGE));
    } catch (error) {
      // It would have spared misses: without it the search goes on by trying.
      if (!(error instanceof RegistryError)) throw error;
    }
  }

  /** Since the pool cache was told of the pool in this search. */
  #missesOf({ name }: IpPool): number {
    return this.#misses - (this.#glimpsed.get(name) ?? 0);
  }

  /** Once for each large pool. True when the pool cache was told something. */
  async #glimpse(pool: IpPool): Promise<boolean> {
    if (this.#isSmall(pool) || this.#glimpsed.has(pool.name)) return false;
    this.#glimpsed.set(pool.name, 0);
    const { registry, poolCache } = this.#tools;
    const usage = await registry.readUsageSummary(pool.name);
    if (usage?.bitmap === undefined) return false;
    const ordinals = ordinalsOf(pool.spec.ranges);
    // Counted for other ranges: the pool was edited since.
    if (hashOfRanges(ordinals) !== usage.rangesHash) return false;
    const others = packMarked(ordinals, usage.bitmap);
    const own = await registry.readUsed(spanOf(pool));
    poolCache.loadEstimate(pool, Buffer.concat([others, own]));
    this.#glimpsed.set(pool.name, this.#misses);
    return true;
  }

  async #ask(pool: IpPool): Promise<boolean> {
    const { registry, poolCache } = this.#tools;
    const neighbours = poolCache.neighboursOf(pool);
    for (const { name } of neighbours) this.#asked.add(name);
    this.#asked.add(pool.name);
    const used = await registry.listUsed(
      spanOf(pool),
      neighbours.map(({ name }) => name),
    );
    if (used === undefined) return this.#disbelieve(neighbours);
    for (const neighbour of neighbours) poolCache.replaceUsed(neighbour, used);
    return true;
  }

  /** Nobody can tell what is in use, and a belief is no reason to refuse: what is known here counts alone, and the search goes on by trying. */
  async #disbelieve(pools: readonly IpPool[]): Promise<boolean> {
    const { registry, poolCache } = this.#tools;
    const believed = pools.filter(({ name }) => poolCache.isEstimate(name));
    for (const pool of believed) poolCache.replaceUsed(pool, await registry.readUsed(spanOf(pool)));
    return believed.length > 0;
  }

  #isSmall({ name }: IpPool): boolean {
    const { total } = this.#tools.poolCache.counts(name) ?? { total: 0n };
    return total <= BigInt(SURVEY_POOL_ADDRESSES);
  }
}

/** All addresses of the pool's subnet: what another pool has of it may be in use, too. */
export function spanOf({ spec: { addressSpace: space, family, subnet } }: IpPool): AddressSpan {
  return { space, family, first: firstIp(subnet).value, last: lastIp(subnet).value };
}
