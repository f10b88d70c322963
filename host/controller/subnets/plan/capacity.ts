/** The capacity of each Subnet: its network, the addresses that it offers, and those without a pool. */

import type { Span } from "../../../core/module.ts";
import { joinSpans, type Spans, sharedSpans, sizeOf, spansOf, withoutSpans } from "../../../core/spans.ts";
import type { MeasuredSubnet } from "../../../metrics/subnet-metrics.ts";
import type { Family } from "../../../net/ip.ts";
import { type Prefix, prefixesOverlap } from "../../../net/prefix.ts";
import { rangeOfPrefix } from "../../../net/range.ts";
import { edgesOf } from "../../../resources/fields/address-spec.ts";
import { routersOf } from "../../../resources/ip-pool-shape.ts";
import type { CurrentSubnet, SubnetsView } from "../model.ts";
import { FreeSpans, firstOf, type HeldIn } from "./free-spans.ts";

/** Subnets of one address space whose networks overlap. */
export class Network {
  readonly addressSpace: string;
  readonly family: Family;
  readonly capacities: SubnetCapacity[] = [];
  /** Nothing is given in this plan: the addresses of a pool that no status reserves must be reserved first. */
  isClosed = false;
  /** The addresses reserved for generated pools. If a pool has others, nothing is given. */
  #taken: Span[] = [];

  constructor(addressSpace: string, family: Family) {
    this.addressSpace = addressSpace;
    this.family = family;
  }

  has(spans: Spans): void {
    this.#taken.push(...spans);
  }

  get taken(): Spans {
    return joinSpans(this.#taken);
  }

  /** Removes the addresses from the free ones of all Subnets. */
  gave(spans: Spans): void {
    for (const { free } of this.capacities) for (const span of spans) free.remove(span);
  }
}

export class SubnetCapacity {
  readonly subnet: CurrentSubnet;
  readonly network: Network;
  /** The addresses that the specification offers to pools, without those of others. */
  readonly offered: Spans;
  /** Number of addresses that the specification offers, including those of others. */
  readonly total: bigint;
  /** The addresses that the status reserves, by the pool's name. */
  readonly entries: ReadonlyMap<string, Spans>;
  /** Pools in the status, and pools that will be created. */
  poolCount: number;
  #free: FreeSpans | undefined;

  constructor(subnet: CurrentSubnet, network: Network, others: Spans) {
    const byName = Map.groupBy(subnet.assignments.pools, ({ name }) => name);
    this.entries = new Map([...byName].map(([name, all]) => [name, joinSpans(all.flatMap(({ ips }) => spansOf(ips)))]));
    this.poolCount = this.entries.size;
    this.subnet = subnet;
    this.network = network;
    const all = withoutSpans(spansOf(subnet.spec.ranges), withheldOf(subnet));
    this.total = sizeOf(all);
    this.offered = withoutSpans(all, others);
  }

  /** A Subnet that is being deleted gives nothing. */
  get isOpen(): boolean {
    return !this.subnet.object.deleting && !this.network.isClosed;
  }

  get free(): FreeSpans {
    this.#free ??= new FreeSpans(this.isOpen ? withoutSpans(this.offered, this.network.taken) : []);
    return this.#free;
  }

  get measured(): MeasuredSubnet {
    const { object, spec } = this.subnet;
    const states = {
      free: Number(sizeOf(this.free.spans)),
      assigned: Number(sizeOf(joinSpans([...this.entries.values()].flat()))),
      withheld: this.withheld,
    };
    return { name: object.name, family: spec.family, size: Number(this.total), states };
  }

  /** Number of addresses that the specification offers, and that others have: pools made by hand, or reservations. */
  get withheld(): number {
    return Number(this.total - sizeOf(this.offered));
  }

  take(own: Spans, count: number, heldIn: HeldIn): Spans {
    const taken = this.free.take(own, count, heldIn);
    this.network.gave(taken);
    return taken;
  }

  /** Returns up to `count` of the addresses that are already reserved for a pool. */
  takePromised(promised: Spans, count: number): Spans {
    return this.isOpen ? firstOf(sharedSpans(promised, this.offered), count) : [];
  }
}

/** The network and broadcast addresses of IPv4, routers, and excluded addresses. */
function withheldOf({ spec }: CurrentSubnet): Spans {
  const { subnet, excluded } = spec;
  const single = [...edgesOf(subnet, rangeOfPrefix(subnet)), ...routersOf(spec)];
  return joinSpans([...spansOf(excluded), ...single.map(({ value }) => ({ first: value, last: value }))]);
}

/** By the Subnet's name. */
export function openCapacities({
  subnets,
  others,
}: Pick<SubnetsView, "subnets" | "others">): Map<string, SubnetCapacity> {
  const capacities = new Map<string, SubnetCapacity>();
  const widest: { readonly prefix: Prefix; readonly network: Network }[] = [];
  // Prefixes are equal, disjoint or nested: the widest one comes first and takes in the others.
  for (const subnet of subnets.toSorted((a, b) => a.spec.subnet.length - b.spec.subnet.length)) {
    const { addressSpace, subnet: prefix, family } = subnet.spec;
    let network = widest.find(
      (each) => each.network.addressSpace === addressSpace && prefixesOverlap(each.prefix, prefix),
    )?.network;
    if (network === undefined) {
      network = new Network(addressSpace, family);
      widest.push({ prefix, network });
    }
    const theirs = others.filter((each) => each.addressSpace === addressSpace && each.family === family);
    const capacity = new SubnetCapacity(subnet, network, joinSpans(theirs.flatMap(({ spans }) => spans)));
    network.capacities.push(capacity);
    capacities.set(subnet.object.name, capacity);
  }
  return capacities;
}
