/** Pools by name, in the order of their names, by the workload that they were generated for, and the defaults. */
import { SortedMap } from "../lib/sorted-map.ts";
import { type PoolOwner, poolOwnerKey } from "./fields/subnet-pool.ts";
import type { IpPool } from "./ip-pool.ts";

type Owner = Pick<PoolOwner, "namespace" | "uid">;

export interface PoolsByName extends ReadonlyMap<string, IpPool> {
  /** Returns the pools that were generated for a workload. */
  ofOwner(owner: Owner): Iterable<IpPool>;
  /** The pools with `spec.default`. */
  readonly defaults: ReadonlySet<IpPool>;
}

/** For ten thousand pools, one or two of which each ADD needs. */
export class PoolTable extends SortedMap<IpPool> implements PoolsByName {
  /** By {@link poolOwnerKey}. */
  readonly #byOwner = new Map<string, Set<IpPool>>();
  readonly defaults = new Set<IpPool>();

  override set(name: string, pool: IpPool): this {
    this.#forget(this.get(name));
    if (pool.spec.default) this.defaults.add(pool);
    const { generated } = pool.spec;
    if (generated !== undefined) {
      this.#byOwner.getOrInsertComputed(poolOwnerKey(generated.application), () => new Set()).add(pool);
    }
    return super.set(name, pool);
  }

  override delete(name: string): boolean {
    this.#forget(this.get(name));
    return super.delete(name);
  }

  override clear(): void {
    this.#byOwner.clear();
    this.defaults.clear();
    super.clear();
  }

  ofOwner(owner: Owner): Iterable<IpPool> {
    return this.#byOwner.get(poolOwnerKey(owner)) ?? [];
  }

  #forget(pool: IpPool | undefined): void {
    if (pool === undefined) return;
    this.defaults.delete(pool);
    if (pool.spec.generated === undefined) return;
    const key = poolOwnerKey(pool.spec.generated.application);
    const own = this.#byOwner.get(key);
    own?.delete(pool);
    if (own?.size === 0) this.#byOwner.delete(key);
  }
}

/** Returns the table of pools whose names differ. */
export function tableOfPools(pools: Iterable<IpPool>): PoolTable {
  const table = new PoolTable();
  for (const pool of pools) table.set(pool.name, pool);
  return table;
}
