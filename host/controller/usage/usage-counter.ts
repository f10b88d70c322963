/**
 * The usage of all pools, updated with each change of an allocation at the cost of one search. A pool whose ranges change is recounted from all
 * allocations.
 */
import { readCoreWasm } from "../../core/instance.ts";
import { PoolSpace } from "../../core/pool-space.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { isSameList } from "../../lib/same-list.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";
import { rangeOfPrefix } from "../../net/range.ts";
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { equalShape, type PoolShape, poolShape, unionOfRouters } from "../../resources/ip-pool-shape.ts";
import type { PoolUsage } from "../../resources/ip-pool-usage.ts";
import { NONE_OCCUPIED, type OccupiedIps } from "../../resources/occupied-ips.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import type { Counts } from "./plan-usage.ts";
import { NO_STATES, PoolTally, type StateCounts } from "./pool-tally.ts";
import { SpacesIndex } from "./range-search.ts";

/** What a pool was counted by. Its shape follows from it: very many pools' shapes would take more memory than the pools. */
interface Counted {
  readonly spec: IpPool["spec"];
  readonly reserved: readonly ReservedIp[];
  /** Routers that pools of its network name, and addresses of other machines: one list for the network. */
  readonly others: readonly Ip[];
}

interface CountedPool extends Counted {
  readonly name: string;
  readonly tally: PoolTally;
}

/** Most pools whose marks are in the core's memory at once; those of the others sleep until an address of theirs changes. */
const MAX_TALLIES_AWAKE = 256;

export class UsageCounter {
  readonly #space = PoolSpace.open(readCoreWasm());
  readonly #mostAwake: number;
  readonly #pools = new Map<string, CountedPool>();
  /** The one that was used last comes last. */
  readonly #awake = new Set<PoolTally>();
  /** By the pool's name, including deleted pools. */
  readonly #states = new Map<string, Record<AllocationState, number>>();
  #index = new SpacesIndex<CountedPool>([]);
  /** Names of pools that have changed; the caller clears the set. */
  readonly changed = new Set<string>();

  constructor({ mostAwake = MAX_TALLIES_AWAKE }: { readonly mostAwake?: number } = {}) {
    this.#mostAwake = mostAwake;
  }

  /** Takes the current pools and all allocations. Pools whose shape has changed are recounted. `occupied`: addresses of other machines. */
  follow(
    pools: readonly IpPool[],
    reserved: readonly ReservedIp[],
    allocations: Iterable<CachedAllocation>,
    occupied: OccupiedIps = NONE_OCCUPIED,
  ): void {
    const names = new Set<string>(pools.map(({ name }) => name));
    for (const name of this.#pools.keys()) if (!names.has(name)) this.#forget(name);
    const fresh = [...Map.groupBy(pools, networkOf).values()].flatMap((network) => {
      const others = othersOf(network, occupied);
      return network.flatMap((pool) => this.#update(pool, reserved, others));
    });
    this.#index = indexOf([...this.#pools.values()]);
    if (fresh.length === 0) return;
    const index = fresh.length === this.#pools.size ? this.#index : indexOf(fresh);
    for (const { spec } of allocations) {
      for (const pool of index.find(spec.addressSpace, spec.ip))
        this.#wake(pool).take(spec.ip, pool.name === spec.pool);
    }
  }

  /** Takes a new, changed or deleted allocation. */
  apply(change: Change<CachedAllocation>): void {
    const before = change.before?.spec;
    const after = change.kind === "set" ? change.value.spec : undefined;
    if (before?.pool === after?.pool && before?.state === after?.state) return;
    if (before !== undefined) this.#count(before, -1);
    if (after !== undefined) this.#count(after, 1);
  }

  /** Returns undefined if there is no such pool. Cheap. */
  countsOf(pool: string): Counts | undefined {
    return this.#pools.get(pool)?.tally.counts;
  }

  /** Returns the states of the pool's allocations, wherever their addresses are. Cheap. */
  statesOf(pool: string): StateCounts {
    return this.#states.get(pool) ?? NO_STATES;
  }

  /** Returns undefined if there is no such pool. */
  usageOf(pool: string): PoolUsage | undefined {
    const counted = this.#pools.get(pool);
    return counted && this.#wake(counted).usage(this.statesOf(pool));
  }

  /** Returns a new count if the pool has none of its current shape. */
  #update({ name, spec }: IpPool, reserved: readonly ReservedIp[], others: readonly Ip[]): CountedPool[] {
    const by = { spec, reserved, others };
    const counted = this.#pools.get(name);
    if (counted !== undefined && isSameShape(counted, by)) {
      this.#pools.set(name, { ...counted, ...by });
      return [];
    }
    this.#forget(name);
    const fresh = { name, ...by, tally: new PoolTally(this.#space, shapeOf(by)) };
    this.#pools.set(name, fresh);
    this.#wake(fresh);
    this.changed.add(name);
    return [fresh];
  }

  #forget(name: string): void {
    const tally = this.#pools.get(name)?.tally;
    if (tally === undefined) return;
    tally.close();
    this.#awake.delete(tally);
    this.#pools.delete(name);
  }

  /** Returns the pool's tally, awake until many others have been needed. */
  #wake(counted: CountedPool): PoolTally {
    const { tally } = counted;
    if (tally.isAsleep) tally.wake(this.#space, shapeOf(counted));
    this.#awake.delete(tally);
    this.#awake.add(tally);
    const [longest] = this.#awake;
    if (this.#awake.size > this.#mostAwake && longest !== undefined) {
      longest.sleep();
      this.#awake.delete(longest);
    }
    return tally;
  }

  #count({ pool, state, addressSpace, ip }: CachedAllocation["spec"], step: 1 | -1): void {
    this.#countState(pool, state, step);
    this.changed.add(pool);
    for (const counted of this.#index.find(addressSpace, ip)) {
      const { name } = counted;
      const tally = this.#wake(counted);
      if (step === 1) tally.take(ip, name === pool);
      else tally.drop(ip, name === pool);
      this.changed.add(name);
    }
  }

  #countState(pool: string, state: AllocationState, step: 1 | -1): void {
    const states = this.#states.get(pool) ?? { ...NO_STATES };
    states[state] += step;
    if (isEmpty(states)) this.#states.delete(pool);
    else this.#states.set(pool, states);
  }
}

function isSameShape(a: Counted, b: Counted): boolean {
  if (a.spec.addressSpace !== b.spec.addressSpace) return false;
  if (a.spec === b.spec && isSameList(a.reserved, b.reserved) && isSameList(a.others, b.others, equalIp)) return true;
  return equalShape(shapeOf(a), shapeOf(b));
}

function shapeOf({ spec, reserved, others }: Counted): PoolShape {
  return poolShape({ spec }, reserved, others);
}

function networkOf({ spec: { addressSpace, subnet } }: IpPool): string {
  return `${formatPrefix(subnet)} ${addressSpace}`;
}

/** `network`: all pools of one subnet; at least one. */
function othersOf(network: readonly IpPool[], occupied: OccupiedIps): readonly Ip[] {
  const [first] = network;
  if (first === undefined) return [];
  return [...unionOfRouters(network), ...occupied.within(rangeOfPrefix(first.spec.subnet)).map(({ ip }) => ip)];
}

function isEmpty({ Bound, Cooling, Kept, Quarantined }: StateCounts): boolean {
  return Bound === 0 && Cooling === 0 && Kept === 0 && Quarantined === 0;
}

function indexOf(pools: readonly CountedPool[]): SpacesIndex<CountedPool> {
  return new SpacesIndex(
    pools.map((pool) => ({ space: pool.spec.addressSpace, ranges: pool.tally.ranges, value: pool })),
  );
}
