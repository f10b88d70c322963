/**
 * What the address book has not heard of: the registry is asked once per search what anybody has in a pool, before the pool counts as full and
 * after misses (allocation rule 11). The embedded registry has told everything already, and costs nothing here.
 * Called by claim-addresses.ts.
 * Effects: reads the registry; replaces what the address book believes.
 */
import type { AddressBook } from "../../ipam/address-book.ts";
import { SURVEY_MISSES, SURVEY_MISSES_LARGE, SURVEY_POOL_ADDRESSES } from "../../ipam/limits.ts";
import type { Picked } from "../../ipam/pick.ts";
import { firstIp, lastIp } from "../../net/prefix.ts";
import { type Registry, RegistryError } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";

export interface SurveyTools {
  readonly registry: Pick<Registry, "surveyUsed">;
  readonly book: AddressBook;
}

export class Surveys {
  readonly #tools: SurveyTools;
  /** Names of pools that were asked for. */
  readonly #asked = new Set<string>();
  #misses = 0;

  constructor(tools: SurveyTools) {
    this.#tools = tools;
  }

  /** Of addresses in a row that others had. */
  get misses(): number {
    return this.#misses;
  }

  /** True when the book was told what is in use in any of the pools: to look again is worth it. */
  async ask(pools: readonly IpPool[]): Promise<boolean> {
    let isTold = false;
    for (const pool of pools) if (!this.#asked.has(pool.name)) isTold = (await this.#ask(pool)) || isTold;
    return isTold;
  }

  /** Somebody had what was picked: after SURVEY_MISSES the small pools among these are asked for, after SURVEY_MISSES_LARGE all. */
  async miss(picked: readonly Picked[]): Promise<void> {
    this.#misses++;
    if (this.#misses < SURVEY_MISSES) return;
    const pools = picked.map(({ pool }) => pool);
    try {
      await this.ask(pools.filter((pool) => this.#misses >= SURVEY_MISSES_LARGE || this.#isSmall(pool)));
    } catch (error) {
      // It would have spared misses: without it the search goes on by trying.
      if (!(error instanceof RegistryError)) throw error;
    }
  }

  async #ask(pool: IpPool): Promise<boolean> {
    const { registry, book } = this.#tools;
    const { addressSpace: space, family, subnet } = pool.spec;
    const neighbours = book.neighboursOf(pool);
    for (const { name } of neighbours) this.#asked.add(name);
    this.#asked.add(pool.name);
    const span = { space, family, first: firstIp(subnet).value, last: lastIp(subnet).value };
    const used = await registry.surveyUsed(span, neighbours.map(({ name }) => name)); // biome-ignore format: one thought
    if (used === undefined) return false;
    for (const neighbour of neighbours) book.replaceUsed(neighbour, used);
    return true;
  }

  #isSmall({ name }: IpPool): boolean {
    const { total } = this.#tools.book.counts(name) ?? { total: 0n };
    return total <= BigInt(SURVEY_POOL_ADDRESSES);
  }
}
