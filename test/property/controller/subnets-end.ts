/**
 * Requirements on generated pools when all is quiet and one controller lives: each demand that can be met is met,
 * nothing is leaked, and the Subnets say what the pools have.
 */

import { DEFAULT_VENDOR_CONF } from "../../../host/config/vendor-conf.ts";
import type { PoolDemand } from "../../../host/ipam/subnet-pools.ts";
import { decodeVendorConfMap } from "../../../host/resources/vendor-conf-map.ts";
import { ALLOCATIONS, CONFIG_MAPS, RESERVED, type SubnetsWorld } from "./subnets-controller.ts";
import { type PoolFacts, reservationOf, type SubnetFacts } from "./subnets-facts.ts";

export function checkEnd(world: SubnetsWorld): string[] {
  return new End(world).checker();
}

class End {
  readonly #world: SubnetsWorld;
  readonly #pools: PoolFacts[];
  readonly #subnets: ReadonlyMap<string, SubnetFacts>;
  /** `space address` of pools made by hand and ReservedIPs. */
  readonly #others = new Set<string>();
  /** Addresses of all allocations. */
  readonly #held = new Set<string>();
  readonly #problems: string[] = [];

  constructor(world: SubnetsWorld) {
    this.#world = world;
    this.#pools = [...world.checker.pools.values()].filter(({ generated }) => generated !== undefined);
    this.#subnets = world.checker.subnets;
    for (const pool of world.checker.pools.values())
      if (pool.generated === undefined) this.#add(this.#others, pool.addressSpace, pool.addresses);
    for (const object of world.list(RESERVED)) {
      const { addressSpace, addresses } = reservationOf(object);
      this.#add(this.#others, addressSpace, addresses);
    }
    for (const { spec } of world.list(ALLOCATIONS)) this.#held.add(`${spec.addressSpace} ${spec.address}`);
  }

  checker(): string[] {
    const demands = this.#world.workloads.demands();
    for (const demand of demands) this.#checkDemand(demand, demands);
    for (const pool of this.#pools) this.#checkPool(pool, demands);
    for (const subnet of this.#subnets.values()) this.#checkSubnet(subnet);
    return this.#problems;
  }

  #add(to: Set<string>, space: string, addresses: Iterable<string>): void {
    for (const address of addresses) to.add(`${space} ${address}`);
  }

  #poolsOf({ application, ifName, family, subnets }: PoolDemand): PoolFacts[] {
    return this.#pools.filter(
      ({ generated, isDeleting, family: own }) =>
        !isDeleting &&
        generated?.application.uid === application.uid &&
        generated.interface === ifName &&
        own === family &&
        subnets.includes(generated.subnet),
    );
  }

  /** Returns the addresses of a pool that it may hand out. */
  #usable(pool: PoolFacts): string[] {
    const subnet = this.#subnets.get(pool.generated?.subnet ?? "");
    return [...pool.addresses].filter((address) => subnet === undefined || this.#isOffered(subnet, address));
  }

  #isOffered({ offered, addressSpace }: SubnetFacts, address: string): boolean {
    return offered.has(address) && !this.#others.has(`${addressSpace} ${address}`);
  }

  /** Addresses of a Subnet that no pool has. */
  #free(subnet: SubnetFacts): string[] {
    const { addressSpace } = subnet;
    if (subnet.isDeleting) return [];
    return [...subnet.offered].filter(
      (address) =>
        this.#isOffered(subnet, address) &&
        !this.#held.has(`${addressSpace} ${address}`) &&
        !this.#pools.some((pool) => pool.addressSpace === addressSpace && pool.addresses.has(address)),
    );
  }

  #checkDemand(demand: PoolDemand, demands: readonly PoolDemand[]): void {
    const { application, ifName, family, count, subnets } = demand;
    const name = `${application.name} (${application.uid}) ${ifName} IPv${family} in ${subnets.join()}`;
    const pools = this.#poolsOf(demand);
    for (const subnet of subnets) {
      const same = pools.filter(({ generated }) => generated?.subnet === subnet);
      // Two controllers may have made one each: what pods hold of the other one stays until they go.
      const spare = same.filter(({ addresses, addressSpace }) =>
        [...addresses].every((address) => this.#held.has(`${addressSpace} ${address}`)) ? addresses.size === 0 : true,
      );
      if (same.length > 1 && spare.length > 1)
        this.#problem(`${name} has ${same.map((pool) => pool.name).join(" and ")}`);
    }
    const usable = pools.flatMap((pool) => this.#usable(pool));
    if (usable.length < count && !this.#isLimited(demand, pools)) {
      const left = subnets.flatMap((subnet) => {
        const facts = this.#subnets.get(subnet);
        return facts?.family === family ? this.#free(facts) : [];
      });
      if (left.length > 0)
        this.#problem(`${name} wants ${count} and has ${usable.length}, while ${left.join()} are free`);
    }
    // A pool may serve two versions of a workload, of which one wants more.
    const shared = demands.filter((other) => this.#poolsOf(other).some((pool) => pools.includes(pool)));
    const isMost = shared.every(
      (other) => other.count <= count || !this.#poolsOf(other).every((pool) => pools.includes(pool)),
    );
    const spare = usable.filter((address) => !this.#held.has(`${pools[0]?.addressSpace} ${address}`)).length;
    if (shared.length === 1 && isMost && usable.length > count && spare > 0)
      this.#problem(`${name} wants ${count} and has ${usable.length}, of which ${spare} are not held`);
  }

  #isLimited({ application }: PoolDemand, pools: readonly PoolFacts[]): boolean {
    const [map] = this.#world.list(CONFIG_MAPS);
    const conf = map === undefined ? DEFAULT_VENDOR_CONF : decodeVendorConfMap(map, "the walk").conf;
    const ofNamespace = this.#pools
      .filter(({ generated }) => generated?.application.namespace === application.namespace)
      .reduce((sum, { addresses }) => sum + addresses.size, 0);
    const { maxGeneratedPoolSize, maxGeneratedAddressesPerNamespace: most } = conf;
    return pools.some(({ addresses }) => addresses.size >= maxGeneratedPoolSize) || (most > 0 && ofNamespace >= most);
  }

  #checkPool(pool: PoolFacts, demands: readonly PoolDemand[]): void {
    const { generated, addresses, addressSpace } = pool;
    if (generated === undefined) return;
    const isHeld = [...addresses].some((address) => this.#held.has(`${addressSpace} ${address}`));
    const isWanted = demands.some((demand) => this.#poolsOf(demand).includes(pool));
    const isGone = this.#world.workloads.gone.has(generated.application.uid);
    const hasAllocations = this.#world.list(ALLOCATIONS).some(({ spec }) => spec.pool === pool.name);
    if (pool.isDeleting && !hasAllocations) this.#problem(`${pool.name} is being deleted, and nothing keeps it`);
    if (isGone && generated.reclaim && !pool.isDeleting) this.#problem(`${pool.name} outlives its workload`);
    if (!isGone && !isWanted && !isHeld && !pool.isDeleting) this.#problem(`${pool.name} serves no workload`);
    const subnet = this.#subnets.get(generated.subnet);
    const odd =
      subnet === undefined || pool.isDeleting
        ? []
        : [...addresses].filter((address) => !this.#isOffered(subnet, address));
    const free = odd.filter((address) => !this.#held.has(`${addressSpace} ${address}`));
    if (free.length > 0) this.#problem(`${pool.name} has ${free.join()}, which its Subnet does not offer`);
    if (subnet === undefined && addresses.size > 0) this.#problem(`${pool.name} is of a Subnet that is not there`);
  }

  #checkSubnet(subnet: SubnetFacts): void {
    const { name, reserved, assigned } = subnet;
    const own = this.#pools.filter(({ generated, addresses }) => generated?.subnet === name && addresses.size > 0);
    const is = [...reserved]
      .filter(([, all]) => all.size > 0)
      .map(([pool, all]) => `${pool}=${[...all].sort().join()}`);
    const wanted = own.map((pool) => `${pool.name}=${[...pool.addresses].sort().join()}`);
    if (is.sort().join(" ") !== wanted.sort().join(" "))
      this.#problem(
        `${name} reserves ${is.join(" ") || "nothing"}, and the pools have ${wanted.join(" ") || "nothing"}`,
      );
    const count = own.reduce((sum, { addresses }) => sum + addresses.size, 0);
    if ((assigned ?? 0) !== count) this.#problem(`${name} says ${String(assigned)} assigned, of ${count}`);
    if (subnet.isDeleting && own.length === 0 && this.#pools.every(({ generated }) => generated?.subnet !== name))
      this.#problem(`${name} is being deleted, and nothing keeps it`);
  }

  #problem(text: string): void {
    this.#problems.push(`in the end: ${text}`);
  }
}
