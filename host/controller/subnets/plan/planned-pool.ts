/** One generated pool while it is planned: its addresses, those of them that it may keep, and its target. */

import type { Span } from "../../../core/module.ts";
import {
  areContested,
  areSame,
  joinSpans,
  type Spans,
  sharedSpans,
  sizeOf,
  spansOf,
  withoutSpans,
} from "../../../core/spans.ts";
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import { byName } from "../../../lib/order.ts";
import { formatIp } from "../../../net/ip.ts";
import { formatPrefix } from "../../../net/prefix.ts";
import { type AddressSpec, MAX_RANGES } from "../../../resources/fields/address-spec.ts";
import {
  isSameWorkload,
  type PoolOwner,
  poolOwnerKey,
  type SubnetPoolSpec,
} from "../../../resources/fields/subnet-pool.ts";
import type { CurrentPool, PoolTarget } from "../model.ts";
import type { SubnetCapacity } from "./capacity.ts";
import type { HeldIn } from "./free-spans.ts";

/** An existing pool, whose Subnet may be absent; or a Subnet, in which a pool may have to be created. */
type Place =
  | { readonly now: CurrentPool; readonly capacity: undefined }
  | { readonly now: CurrentPool | undefined; readonly capacity: SubnetCapacity };

export class PlannedPool {
  readonly name: string;
  /** Undefined for a pool that will be created. */
  readonly now: CurrentPool | undefined;
  /** Undefined if its Subnet does not exist. */
  readonly capacity: SubnetCapacity | undefined;
  /** The Subnet's; its own if that does not exist. */
  readonly spec: Pick<AddressSpec, "addressSpace" | "family" | "gateway" | "routes">;
  readonly isDeleting: boolean;
  /** The addresses in its specification. */
  readonly ranges: Spans;
  /** The addresses that the Subnet's status reserves for it. */
  readonly entry: Spans;
  /** The part of `entry` that no other pool has, or is promised. */
  promised: Spans;
  target: Spans;
  generated: SubnetPoolSpec;
  /** It keeps addresses only because they are in use. */
  keepsHeld = false;

  constructor(name: string, place: Place, generated: SubnetPoolSpec) {
    const { now, capacity } = place;
    this.name = name;
    this.now = now;
    this.capacity = capacity;
    this.spec = place.capacity === undefined ? place.now.spec : place.capacity.subnet.spec;
    this.isDeleting = now?.object.deleting === true;
    this.generated = generated;
    this.ranges = rangesOfPool(place);
    this.entry = capacity?.entries.get(name) ?? [];
    this.promised = this.entry;
    this.target = this.ranges;
  }

  /** The part of the target that the Subnet still offers. */
  get usable(): Spans {
    return this.capacity === undefined ? this.target : sharedSpans(this.target, this.capacity.offered);
  }

  get size(): number {
    return Number(sizeOf(this.usable));
  }

  get key(): string {
    const { application, interface: ifName, subnet } = this.generated;
    return keyOf(application, ifName, this.spec.family, subnet);
  }

  /** Whether it has addresses that its Subnet's status does not reserve. */
  get isUnknown(): boolean {
    return this.capacity !== undefined && withoutSpans(this.ranges, this.entry).length > 0;
  }

  /** Returns false if not all fit: a pool, and its entry in the Subnet's status, have a limited number of ranges. */
  add(spans: Spans): boolean {
    const whole = joinSpans([...this.entry, ...this.ranges, ...this.target]);
    const fits = joinSpans([...whole, ...spans]).length <= MAX_RANGES;
    const taken = fits ? spans : spans.slice(0, Math.max(0, MAX_RANGES - whole.length));
    this.target = joinSpans([...this.target, ...taken]);
    return fits;
  }

  /** Drops an address even if it is in use. */
  drop(address: bigint): void {
    const span = [{ first: address, last: address }];
    this.target = withoutSpans(this.target, span);
    this.promised = withoutSpans(this.promised, span);
  }

  keepOnly(spans: Spans, heldIn: HeldIn): void {
    const odd = withoutSpans(this.target, spans);
    if (odd.length === 0) return;
    const held = heldIn(odd);
    this.keepsHeld ||= held.length > 0;
    this.target = joinSpans([...sharedSpans(this.target, spans), ...held]);
  }
}

export function keyOf(
  application: Pick<PoolOwner, "namespace" | "uid">,
  ifName: string,
  family: number,
  subnet: string,
): string {
  return `${poolOwnerKey(application)}/${ifName}/${family}/${subnet}`;
}

/**
 * Takes from each pool the addresses that another one has or is promised as well, unless they are in use; of two pools
 * the first by name keeps them. `foreign`: addresses reserved for unknown pools, which may exist all the same.
 */
export function resolveOverlaps(
  pools: readonly PlannedPool[],
  foreign: readonly Spans[],
  heldFor: (pool: PlannedPool) => HeldIn,
): void {
  const owners = pools.map((pool) => ({ pool, spans: joinSpans([...pool.entry, ...pool.ranges]) }));
  if (!areContested([...owners.map(({ spans }) => spans), ...foreign].flat())) return;
  const assigned: Span[] = [];
  for (const { pool } of owners.toSorted((a, b) => byName(a.pool, b.pool))) {
    const promised = joinSpans([...pools.flatMap((other) => (other === pool ? [] : other.entry)), ...foreign.flat()]);
    const theirs = joinSpans([...assigned, ...withoutSpans(promised, pool.entry)]);
    // The known version of the Subnet may be older than that of the pool: it never takes away a pod's address.
    const held = heldFor(pool)(sharedSpans(pool.target, theirs));
    pool.keepsHeld ||= held.length > 0;
    pool.target = joinSpans([...withoutSpans(pool.target, theirs), ...held]);
    pool.promised = withoutSpans(pool.entry, joinSpans([...assigned, ...promised]));
    assigned.push(...pool.target);
  }
}

/** Returns the addresses that the pool has. */
export function rangesOfPool({ now }: Pick<PoolTarget, "now">): Spans {
  return now === undefined ? [] : spansOf(now.spec.ranges);
}

/** Returns whether the pool gets addresses that it has not. */
export function grows(target: PoolTarget): boolean {
  return withoutSpans(target.spans, rangesOfPool(target)).length > 0;
}

/** Returns the pool as it is. */
export function unchangedTarget(state: PlannedPool): PoolTarget {
  return { ...targetOf(state), spans: state.ranges, isChanged: false };
}

export function targetOf(state: PlannedPool): PoolTarget {
  const { name, now, capacity, generated, entry, ranges, isDeleting } = state;
  const { gateway, routes } = state.spec;
  // A deleted pool stays unchanged, and further addresses reserved for it go back.
  const spans = isDeleting ? ranges : state.target;
  const { isUnknown } = state;
  const target = { name, now, subnet: capacity?.subnet, spans, generated, gateway, routes, isUnknown };
  if (now === undefined) return { ...target, isChanged: spans.length > 0 };
  const isOther =
    !areSame(spans, ranges) ||
    describeGenerated(generated) !== describeGenerated(now.generated) ||
    describeWay(target) !== describeWay(now.spec);
  const isPromisedMore = withoutSpans(entry, spans).length > 0;
  return { ...target, isChanged: (isOther && !isDeleting) || isPromisedMore || isUnknown };
}

/** The API server's order of keys differs. */
function describeGenerated({ application, ...rest }: SubnetPoolSpec): string {
  return JSON.stringify([application, rest].map((each) => Object.entries(each).sort()));
}

function describeWay({ gateway, routes }: Pick<AddressSpec, "gateway" | "routes">): string {
  const way = routes.map(({ dst, gw }) => `${formatPrefix(dst)} via ${formatIp(gw)}`);
  return [gateway === undefined ? "" : formatIp(gateway), ...way].join();
}

/**
 * Returns whether the pool, which serves no request, was retained for a later workload of the same kind, namespace and
 * name, for the same NIC.
 */
export function isOrphanFor(
  { generated, capacity }: PlannedPool,
  { application, ifName }: PoolDemand,
  from: SubnetCapacity,
): boolean {
  return capacity === from && generated.interface === ifName && isSameWorkload(generated.application, application);
}
