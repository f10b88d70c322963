/**
 * The usage of all pools, updated with each change of an allocation at the cost of one search. A pool whose ranges
 * change is recounted from all allocations.
 */
import { readCoreWasm } from "../../core/instance.ts";
import type { Pool } from "../../core/pool.ts";
import type { PoolShape } from "../../core/pool-shape.ts";
import { PoolSpace } from "../../core/pool-space.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { isSameList } from "../../lib/same-list.ts";
import { equalIp, type Ip } from "../../net/ip.ts";
import { rangeOfPrefix, rangesOverlap } from "../../net/range.ts";
import { segmentsOf } from "../../resources/check-pools.ts";
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { equalShape, poolShape, unionOfRouters } from "../../resources/ip-pool-shape.ts";
import { formatRangesHash, MAX_USAGE_BITMAP_BYTES, type PoolUsage } from "../../resources/ip-pool-usage.ts";
import { SpacesIndex } from "../../resources/range-search.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import type { Counts } from "./plan-usage.ts";

/**
 * The values behind a pool's counts. Its shape is derived from them: the shapes of very many pools would take more
 * memory than the pools.
 */
interface Counted {
  readonly spec: IpPool["spec"];
  readonly reserved: readonly ReservedIp[];
  /** Routers that pools of its network name: one list for the network. */
  readonly others: readonly Ip[];
}

interface CountedPool extends Counted {
  readonly name: string;
  readonly tally: PoolTally;
}

export class UsageCounter {
  readonly #space = PoolSpace.open(readCoreWasm());
  readonly #pools = new Map<string, CountedPool>();
  /** By the pool's name, including deleted pools. */
  readonly #states = new Map<string, Record<AllocationState, number>>();
  #reserved: readonly ReservedIp[] = [];
  #index = new SpacesIndex<CountedPool>([]);
  /** Names of changed pools; the caller clears the set. */
  readonly changed = new Set<string>();

  /** Takes the current pools and all allocations. Recounts pools whose shape has changed. */
  follow(pools: readonly IpPool[], reserved: readonly ReservedIp[], allocations: Iterable<CachedAllocation>): void {
    const names = new Set<string>(pools.map(({ name }) => name));
    const moved = [...new Set(this.#reserved).symmetricDifference(new Set(reserved))];
    for (const name of this.#pools.keys()) if (!names.has(name)) this.#forget(name);
    const fresh = segmentsOf(pools).flatMap((network) => {
      const others = unionOfRouters(network);
      return network.flatMap(({ name, spec }) => this.#update(name, { spec, reserved, others }, moved));
    });
    this.#reserved = reserved;
    this.#index = indexOf([...this.#pools.values()]);
    if (fresh.length === 0) return;
    const index = fresh.length === this.#pools.size ? this.#index : indexOf(fresh);
    for (const { spec } of allocations) {
      for (const pool of index.find(spec.addressSpace, spec.ip)) pool.tally.take(spec.ip, pool.name === spec.pool);
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
    return counted?.tally.usage(this.statesOf(pool));
  }

  /** Returns a new count if the pool has none of its current shape. */
  #update(name: string, by: Counted, moved: readonly ReservedIp[]): CountedPool[] {
    const counted = this.#pools.get(name);
    if (counted !== undefined && isSameShape(counted, by, moved)) {
      this.#pools.set(name, { ...counted, ...by });
      return [];
    }
    this.#forget(name);
    const fresh = { name, ...by, tally: new PoolTally(this.#space, shapeOf(by)) };
    this.#pools.set(name, fresh);
    this.changed.add(name);
    return [fresh];
  }

  #forget(name: string): void {
    this.#pools.get(name)?.tally.close();
    this.#pools.delete(name);
  }

  #count({ pool, state, addressSpace, ip }: CachedAllocation["spec"], step: 1 | -1): void {
    this.#countState(pool, state, step);
    this.changed.add(pool);
    for (const { name, tally } of this.#index.find(addressSpace, ip)) {
      if (step === 1) tally.take(ip, name === pool);
      else tally.drop(ip, name === pool);
      this.changed.add(name);
    }
  }

  #countState(pool: string, state: AllocationState, step: 1 | -1): void {
    const states = this.#states.get(pool) ?? { ...NO_STATES };
    states[state] += step;
    if (states.Bound === 0 && states.Cooling === 0 && states.Kept === 0 && states.Quarantined === 0)
      this.#states.delete(pool);
    else this.#states.set(pool, states);
  }
}

/** `moved`: the reservations that one of them does not have. */
function isSameShape(a: Counted, b: Counted, moved: readonly ReservedIp[]): boolean {
  if (a.spec.addressSpace !== b.spec.addressSpace) return false;
  const whole = rangeOfPrefix(b.spec.subnet);
  const isNear = ({ spec }: ReservedIp): boolean => spec.ranges.some((range) => rangesOverlap(range, whole));
  if (a.spec === b.spec && !moved.some(isNear) && isSameList(a.others, b.others, equalIp)) return true;
  return equalShape(shapeOf(a), shapeOf(b));
}

function shapeOf({ spec, reserved, others }: Counted): PoolShape {
  return poolShape({ spec }, reserved, others);
}

function indexOf(pools: readonly CountedPool[]): SpacesIndex<CountedPool> {
  return new SpacesIndex(
    pools.map((pool) => ({ space: pool.spec.addressSpace, ranges: pool.tally.ranges, value: pool })),
  );
}

type StateCounts = Readonly<Record<AllocationState, number>>;

const NO_STATES: StateCounts = { Bound: 0, Cooling: 0, Kept: 0, Quarantined: 0 };

export class PoolTally {
  readonly ranges: PoolShape["ranges"];
  readonly #pool: Pool;
  /** Addresses of the ranges whose allocation is the pool's own. */
  #own = 0;

  constructor(space: PoolSpace, shape: PoolShape) {
    this.ranges = shape.ranges;
    this.#pool = space.createPool(shape);
  }

  /** Counts an address with an allocation, once; `isOwn`: of this pool. Ignores addresses outside the ranges. */
  take(ip: Ip, isOwn: boolean): void {
    if (this.#pool.claim(ip) !== "outside" && isOwn) this.#own++;
  }

  /** Takes back {@link take}. */
  drop(ip: Ip, isOwn: boolean): void {
    if (this.#pool.release(ip) !== "outside" && isOwn) this.#own--;
  }

  /** Counts of the allocatable addresses; `total` is at most Number.MAX_SAFE_INTEGER. */
  get counts(): Counts {
    const { total, used, usedMasked } = this.#pool.counts();
    return { total: atMostSafe(total), used: used - usedMasked };
  }

  /** `states`: of the pool's allocations. */
  usage(states: StateCounts): PoolUsage {
    const { total, free, used, window, digest } = this.#pool.counts();
    // The window is the number of addresses up to 2^24, which is above this limit.
    const hasBitmap = window <= 8 * MAX_USAGE_BITMAP_BYTES;
    const all = states.Bound + states.Cooling + states.Kept + states.Quarantined;
    return {
      rangesHash: formatRangesHash(digest),
      total: atMostSafe(total),
      free: atMostSafe(free),
      bound: states.Bound,
      cooling: states.Cooling,
      kept: states.Kept,
      quarantined: states.Quarantined,
      outside: all - this.#own,
      others: used - this.#own,
      bitmap: hasBitmap ? this.#pool.usedBitmap(window) : undefined,
      freePerBlock: hasBitmap ? undefined : [...this.#pool.freePerBlock()],
    };
  }

  /** The pool is gone, or has another shape: this object is no longer used. */
  close(): void {
    this.#pool.drop();
  }
}

function atMostSafe(count: bigint): number {
  return count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count);
}
