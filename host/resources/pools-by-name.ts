/** Pools by name, in the order of their names, and by the workload for which they were generated. */
import { SortedMap } from "../lib/sorted-map.ts";
import { type PoolOwner, poolOwnerKey } from "./fields/subnet-pool.ts";
import type { IpPool } from "./ip-pool.ts";

type Owner = Pick<PoolOwner, "namespace" | "uid">;

export interface PoolsByName extends ReadonlyMap<string, IpPool> {
  /** The pools that were generated for a workload. Absent: they are not sorted by workload, and all have to be looked at. */
  ofOwner?(owner: Owner): Iterable<IpPool>;
}

/** For ten thousand pools, of which each ADD needs one. */
export class PoolTable extends SortedMap<IpPool> implements PoolsByName {
  /** By {@link poolOwnerKey}. */
  readonly #byOwner = new Map<string, Set<IpPool>>();

  override set(name: string, pool: IpPool): this {
    this.#forget(this.get(name));
    const { generated } = pool.spec;
    if (generated !== undefined) {
      const key = poolOwnerKey(generated.application);
      this.#byOwner.set(key, (this.#byOwner.get(key) ?? new Set()).add(pool));
    }
    return super.set(name, pool);
  }

  override delete(name: string): boolean {
    this.#forget(this.get(name));
    return super.delete(name);
  }

  override clear(): void {
    this.#byOwner.clear();
    super.clear();
  }

  ofOwner(owner: Owner): Iterable<IpPool> {
    return this.#byOwner.get(poolOwnerKey(owner)) ?? [];
  }

  #forget(pool: IpPool | undefined): void {
    if (pool?.spec.generated === undefined) return;
    const key = poolOwnerKey(pool.spec.generated.application);
    const own = this.#byOwner.get(key);
    own?.delete(pool);
    if (own?.size === 0) this.#byOwner.delete(key);
  }
}
