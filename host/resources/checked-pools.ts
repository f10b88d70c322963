/**
 * The usable pools, kept along with their changes: the results of {@link checkPools} for all, at the cost of the
 * changed ones and of those in networks that overlap theirs.
 */
import { byName } from "../lib/order.ts";
import { SortedMap } from "../lib/sorted-map.ts";
import type { Prefix } from "../net/prefix.ts";
import { PrefixTable } from "../net/prefix-table.ts";
import { checkPools, refuseFaulty } from "./check-pools.ts";
import type { IpPool } from "./ip-pool.ts";
import { type PoolsByName, PoolTable } from "./pools-by-name.ts";

/** The pools of one subnet in one address space, usable or not, by name. */
interface Network {
  readonly space: string;
  readonly subnet: Prefix;
  readonly pools: Map<string, IpPool>;
}

export class CheckedPools {
  readonly #known = new SortedMap<IpPool>();
  readonly #accepted = new PoolTable();
  readonly #refused = new Map<string, string>();
  readonly #networks = new Map<string, PrefixTable<Network>>();

  /** The usable pools, by name. They change with {@link apply}. */
  get accepted(): PoolsByName {
    return this.#accepted;
  }

  /** Why the others are unusable, by name: `is refused: …`. */
  get refused(): ReadonlyMap<string, string> {
    return this.#refused;
  }

  /**
   * Takes new and changed pools; undefined for a deleted one. Returns the names of pools that became usable or
   * unusable, or have changed.
   */
  apply(changes: Iterable<readonly [name: string, pool: IpPool | undefined]>): ReadonlySet<string> {
    const changed = new Set<string>();
    const contested = new Set<Network>();
    for (const [name, pool] of changes) {
      const before = this.#known.get(name);
      if (before === pool) continue;
      if (before !== undefined) this.#remove(before, contested);
      if (pool !== undefined) this.#add(pool, contested);
      this.#decide(name, pool, pool && refuseFaulty(pool));
      changed.add(name);
    }
    for (const network of contested) {
      const relatives = this.#relativesOf(network);
      for (const each of relatives) contested.delete(each);
      const pools = relatives.flatMap((each) => [...each.pools.values()]).sort(byName);
      const { refused } = checkPools(pools);
      for (const pool of pools) if (this.#decide(pool.name, pool, refused.get(pool.name))) changed.add(pool.name);
    }
    return changed;
  }

  /** Notes the networks whose pools must be decided again. */
  #remove(pool: IpPool, contested: Set<Network>): void {
    const { addressSpace, subnet } = pool.spec;
    const table = this.#networks.get(addressSpace);
    const network = table?.get(subnet);
    if (network === undefined) return;
    this.#contest(network, contested);
    this.#known.delete(pool.name);
    network.pools.delete(pool.name);
    if (network.pools.size > 0) return;
    table?.delete(subnet);
    contested.delete(network);
  }

  #add(pool: IpPool, contested: Set<Network>): void {
    const { addressSpace: space, subnet } = pool.spec;
    const table = this.#networks.getOrInsertComputed(space, () => new PrefixTable<Network>());
    const network = table.get(subnet) ?? { space, subnet, pools: new Map<string, IpPool>() };
    if (network.pools.size === 0) table.add(subnet, network);
    network.pools.set(pool.name, pool);
    this.#known.set(pool.name, pool);
    this.#contest(network, contested);
  }

  /** Pools of a network that overlaps no other are all accepted. */
  #contest(network: Network, contested: Set<Network>): void {
    const relatives = this.#relativesOf(network);
    if (relatives.length > 1) for (const each of relatives) contested.add(each);
  }

  #relativesOf({ space, subnet }: Network): readonly Network[] {
    return this.#networks.get(space)?.relativesOf(subnet) ?? [];
  }

  /** Returns whether the pool was decided otherwise before. */
  #decide(name: string, pool: IpPool | undefined, refusal: string | undefined): boolean {
    const usable = refusal === undefined ? pool : undefined;
    if (this.#accepted.get(name) === usable && this.#refused.get(name) === refusal) return false;
    if (usable === undefined) this.#accepted.delete(name);
    else this.#accepted.set(name, usable);
    if (refusal === undefined) this.#refused.delete(name);
    else this.#refused.set(name, refusal);
    return true;
  }
}
