/**
 * The checker of generated pools: sees every write to every IPPool and Subnet in order, and says what must not have
 * happened (docs/subnets.md).
 *
 *   const checker = new PoolChecker();
 *   checker.writtenPool({ name, revision, object });    // each revision of each object; undefined: deleted
 *   checker.writtenSubnet({ name, revision, object });
 *   checker.breaches                                    // texts; none: all is well
 *
 * No address is in two generated pools; none is generated that a pool made by hand has; a generated pool has what its
 * Subnet's status says, and that says of no address that two pools have it.
 */
import { compareIp } from "../../../host/net/ip.ts";
import { formatRange, type Range, rangesOverlap } from "../../../host/net/range.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import type { Assignments, Subnet } from "../../../host/resources/subnet.ts";

/** One write as etcd keeps it. */
export interface PoolWrite<T> {
  readonly name: string;
  /** Of etcd's whole store; grows with every write. */
  readonly revision: number;
  /** Undefined: deleted. */
  readonly object: T | undefined;
}

export type CheckedSubnet = Subnet & { readonly assignments: Assignments };

/** Breaches beyond these are counted only: one mistake often makes thousands. */
const MAX_TEXTS = 50;

export class PoolChecker {
  readonly #pools = new Map<string, IpPool>();
  readonly #subnets = new Map<string, CheckedSubnet>();
  readonly #texts: string[] = [];
  #breaches = 0;

  get breaches(): readonly string[] {
    const more = this.#breaches - this.#texts.length;
    return more === 0 ? this.#texts : [...this.#texts, `and ${more} more`];
  }

  /** As the last write of each left them, by name. */
  get pools(): ReadonlyMap<string, IpPool> {
    return this.#pools;
  }

  get subnets(): ReadonlyMap<string, CheckedSubnet> {
    return this.#subnets;
  }

  writtenPool({ name, revision, object }: PoolWrite<IpPool>): void {
    const before = this.#pools.get(name);
    if (object === undefined) this.#pools.delete(name);
    else this.#pools.set(name, object);
    // Pools made by hand over a generated pool are not checked.
    if (object?.spec.generated === undefined) return;
    const gained = object.spec.ranges.filter((range) => !isCovered(range, before?.spec.ranges ?? []));
    for (const other of this.#pools.values()) {
      if (other.name === name || other.spec.addressSpace !== object.spec.addressSpace) continue;
      const shared = findShared(other.spec.generated === undefined ? gained : object.spec.ranges, other.spec.ranges);
      if (shared !== undefined) this.#breach(revision, `pool ${name} has ${shared}, and so has pool ${other.name}`);
    }
    this.#checkAssigned(revision, object);
  }

  writtenSubnet({ name, revision, object }: PoolWrite<CheckedSubnet>): void {
    if (object === undefined) return void this.#subnets.delete(name);
    this.#subnets.set(name, object);
    const all = object.assignments.pools.flatMap(({ name: pool, ips }) => ips.map((range) => ({ pool, range })));
    all.sort((a, b) => compareIp(a.range.first, b.range.first));
    for (const [index, { pool, range }] of all.entries()) {
      const next = all[index + 1];
      if (next !== undefined && rangesOverlap(range, next.range))
        this.#breach(revision, `Subnet ${name} assigns ${formatRange(next.range)} to ${pool} and to ${next.pool}`);
    }
    for (const pool of this.#pools.values())
      if (pool.spec.generated?.subnet === name) this.#checkAssigned(revision, pool);
  }

  /** For what the caller has found out by itself. */
  report(breach: string): void {
    this.#breach(0, breach);
  }

  #checkAssigned(revision: number, { name, spec }: IpPool): void {
    const subnet = this.#subnets.get(spec.generated?.subnet ?? "");
    if (subnet === undefined) return;
    const assigned = subnet.assignments.pools.find((each) => each.name === name)?.ips ?? [];
    for (const range of spec.ranges)
      if (!isCovered(range, assigned))
        this.#breach(revision, `pool ${name} has ${formatRange(range)}, which Subnet ${subnet.name} does not assign`);
  }

  #breach(revision: number, text: string): void {
    this.#breaches++;
    if (this.#texts.length < MAX_TEXTS) this.#texts.push(`revision ${revision}: ${text}`);
  }
}

function findShared(some: readonly Range[], others: readonly Range[]): string | undefined {
  const found = some.find((range) => others.some((other) => rangesOverlap(range, other)));
  return found === undefined ? undefined : formatRange(found);
}

/** Whether the ranges together have all of it. */
function isCovered({ first, last }: Range, ranges: readonly Range[]): boolean {
  let next = first.value;
  for (const range of [...ranges].sort((a, b) => compareIp(a.first, b.first))) {
    if (range.first.family === first.family && range.first.value <= next && range.last.value >= next)
      next = range.last.value + 1n;
  }
  return next > last.value;
}
