/**
 * The routers by which pods may route, which no pool hands out (docs/allocation.md, "Never allocated"): those in the
 * rows of the registry, and since they were read those that pools have named.
 */
import { formatIp, parseIp } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import { listRows } from "../../registry/list-rows.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import { type IpPool, withRouters } from "../../resources/ip-pool.ts";
import { routersOf } from "../../resources/ip-pool-shape.ts";
import { type PoolsByName, tableOfPools } from "../../resources/pools-by-name.ts";

/** A router that pods of the pool were told. */
type RouterInUse = Pick<Allocation, "pool" | "space" | "ip">;

/** Each router once for a pool and space. */
export class RoutersInUse {
  readonly #routers = new Map<string, RouterInUse>();

  static async read(registry: Pick<Registry, "list">): Promise<RoutersInUse> {
    const inUse = new RoutersInUse();
    for await (const { state, pool, space, routers = [] } of listRows(registry)) {
      if (state !== "Bound") continue;
      for (const ip of routers.flatMap((text) => parseIp(text) ?? [])) inUse.#add({ pool, space, ip });
    }
    return inUse;
  }

  /** Adds the routers that the pools name. */
  addNamed(pools: PoolsByName): void {
    for (const { name: pool, spec } of pools.values())
      for (const ip of routersOf(spec)) this.#add({ pool, space: spec.addressSpace, ip });
  }

  /** Returns the pools, which hold the routers back: all around one whose own pool is gone, or has moved. */
  heldBy(pools: PoolsByName): PoolsByName {
    const held = new Map<IpPool, Set<string>>();
    for (const router of this.#routers.values()) {
      const own = pools.get(router.pool);
      const holders =
        own !== undefined && isAround(own, router) ? [own] : pools.values().filter((each) => isAround(each, router));
      for (const pool of holders) held.getOrInsertComputed(pool, () => new Set()).add(formatIp(router.ip));
    }
    const hold = (pool: IpPool): IpPool => {
      const spec = withRouters(pool.spec, held.get(pool) ?? []);
      return spec === pool.spec ? pool : { ...pool, spec };
    };
    return tableOfPools(pools.values().map(hold));
  }

  #add(router: RouterInUse): void {
    this.#routers.set(`${router.pool} ${formatIp(router.ip)} ${router.space}`, router);
  }
}

function isAround({ spec }: IpPool, { space, ip }: RouterInUse): boolean {
  return spec.addressSpace === space && prefixContains(spec.subnet, ip);
}
