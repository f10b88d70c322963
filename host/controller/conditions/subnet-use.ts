/** Each Subnet's supply for pools, and the pools that have it, computed like the division of Subnets. */

import { joinSpans, type Span, type Spans, sharedSpans, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { messageOf } from "../../lib/describe.ts";
import { isSameList } from "../../lib/same-list.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import type { Assignments, Subnet } from "../../resources/subnet.ts";
import type { ControlledSubnet } from "../objects.ts";
import { openCapacities, type SubnetCapacity } from "../subnets/plan/capacity.ts";

interface SubnetUseView {
  readonly pools: readonly IpPool[];
  readonly subnets: readonly ControlledSubnet[];
  readonly reserved: readonly ReservedIp[];
  /** Throws ConfigError. */
  readonly assignmentsOf: (subnet: ControlledSubnet) => Assignments;
  /** The use that earlier passes found. Default: none. */
  readonly known?: KnownUse | undefined;
}

interface Offers {
  /** The values from which the Subnets were opened. */
  readonly from: readonly unknown[];
  readonly capacities: ReadonlyMap<string, SubnetCapacity>;
}

/**
 * Results that most passes would compute as the pass before did. Values are kept by the object from which they
 * follow.
 */
export class KnownUse {
  #offers: Offers = { from: [], capacities: new Map() };
  readonly #sizes = new WeakMap<IpPool["spec"], { readonly offered: Spans | undefined; readonly size: number }>();
  readonly #spans = new WeakMap<IpPool["spec"], { readonly spans: Spans; readonly size: bigint }>();
  readonly #assigned = new WeakMap<Assignments, Assigned>();

  capacities(from: readonly unknown[], open: () => ReadonlyMap<string, SubnetCapacity>): Offers["capacities"] {
    if (!isSameList(from, this.#offers.from)) this.#offers = { from, capacities: open() };
    return this.#offers.capacities;
  }

  spansOf(spec: IpPool["spec"]): { readonly spans: Spans; readonly size: bigint } {
    const known = this.#spans.get(spec);
    if (known !== undefined) return known;
    const spans = spansOf(spec.ranges);
    const made = { spans, size: sizeOf(spans) };
    this.#spans.set(spec, made);
    return made;
  }

  /** Returns the number of the pool's addresses that are offered; undefined: all of them count. */
  sizeOf(spec: IpPool["spec"], offered: Spans | undefined): number {
    const known = this.#sizes.get(spec);
    if (known !== undefined && known.offered === offered) return known.size;
    const { spans, size: all } = this.spansOf(spec);
    const size = Number(offered === undefined ? all : sizeOf(sharedSpans(spans, offered)));
    this.#sizes.set(spec, { offered, size });
    return size;
  }

  assignedIn(assignments: Assignments): Assigned {
    const known = this.#assigned.get(assignments) ?? readAssigned(assignments);
    this.#assigned.set(assignments, known);
    return known;
  }
}

interface Assigned {
  /** By the pool's name. */
  readonly entries: ReadonlyMap<string, Assignments["pools"]>;
  /** Number of addresses that all pools have at most. */
  readonly most: bigint;
}

function readAssigned({ pools }: Assignments): Assigned {
  let most = 0n;
  for (const { ips } of pools) most += sizeOf(spansOf(ips));
  return { entries: Map.groupBy(pools, ({ name }) => name), most };
}

export interface SubnetNumbers {
  readonly total: number;
  readonly free: number;
  /** Addresses that the status assigns to pools, and how many pools those are. */
  readonly assigned: number;
  readonly pools: number;
  /** Addresses that cannot be assigned: reserved, or in pools made by hand. */
  readonly withheld: number;
}

const NOTHING: Assignments = { revision: 0, pools: [] };

export class SubnetUse {
  readonly #view: SubnetUseView;
  readonly #objects: ReadonlyMap<string, ControlledSubnet>;
  readonly #supplies: ReadonlyMap<string, SubnetCapacity>;
  readonly #assignments = new Map<string, Assignments>();
  /** By network. */
  readonly #taken = new Map<SubnetCapacity["network"], Spans>();
  /** By network, how many addresses pools have at most. */
  readonly #most = new Map<SubnetCapacity["network"], bigint>();
  readonly #numbers = new Map<string, SubnetNumbers>();
  readonly #known: KnownUse;

  constructor(view: SubnetUseView) {
    this.#view = view;
    this.#known = view.known ?? new KnownUse();
    this.#objects = new Map(view.subnets.map((subnet) => [subnet.name, subnet]));
    const readable = view.subnets.flatMap((object) => {
      return object.value === undefined ? [] : [{ object, spec: object.value.spec, assignments: NOTHING }];
    });
    const byHand = view.pools.filter(({ spec }) => spec.generated === undefined);
    const specs = [...byHand, ...view.reserved].map(({ spec }) => spec);
    // A Subnet's status, which lists its pools, changes much more often than its specification.
    const keys = readable.map(({ object, spec }) =>
      object.generation > 0 ? `${object.uid}/${object.generation}` : spec,
    );
    this.#supplies = this.#known.capacities([...keys, ...specs], () => {
      const others = specs.map((spec) => ({ ...spec, spans: spansOf(spec.ranges) }));
      return openCapacities({ subnets: readable, others });
    });
  }

  subnet(name: string): ControlledSubnet | undefined {
    return this.#objects.get(name);
  }

  /** Returns how many of the pool's addresses its Subnet still offers; all of them if the Subnet does not exist. */
  sizeOf({ spec }: IpPool): number {
    return this.#known.sizeOf(spec, this.#supplies.get(spec.generated?.subnet ?? "")?.offered);
  }

  /** Returns why the status of the Subnet is invalid, without a full stop; undefined if it is valid. */
  faultOf(subnet: ControlledSubnet): string | undefined {
    try {
      this.#read(subnet);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /**
   * Returns how many addresses the Subnet's status assigns to the pool; undefined if it does not list the pool.
   * Throws ConfigError.
   */
  assignedTo(pool: string, subnet: ControlledSubnet): number | undefined {
    const entries = this.#known.assignedIn(this.#read(subnet)).entries.get(pool);
    return entries && sizeOfRanges(entries.flatMap(({ ips }) => ips));
  }

  /** Returns whether the Subnet has addresses that no pool has. Throws ConfigError for an invalid status. */
  hasRoom(subnet: ControlledSubnet): boolean {
    const supply = this.#supplies.get(subnet.name);
    if (supply === undefined) return false;
    // Where pools cannot have all of them, nothing has to be compared.
    if (sizeOf(supply.offered) > this.#mostTakenIn(supply.network)) return true;
    return (this.numbersOf(subnet)?.free ?? 0) > 0;
  }

  /** Returns how many pools the Subnet's status lists. Throws ConfigError. */
  poolsOf(subnet: ControlledSubnet): number {
    return this.#read(subnet).pools.length;
  }

  /** Throws ConfigError for an invalid status. */
  numbersOf(subnet: ControlledSubnet): SubnetNumbers | undefined {
    const known = this.#numbers.get(subnet.name) ?? this.#count(subnet);
    if (known !== undefined) this.#numbers.set(subnet.name, known);
    return known;
  }

  #count(subnet: ControlledSubnet): SubnetNumbers | undefined {
    const supply = this.#supplies.get(subnet.name);
    if (supply === undefined) return undefined;
    const { pools } = this.#read(subnet);
    return {
      total: Number(supply.total),
      free: Number(sizeOf(withoutSpans(supply.offered, this.#takenIn(supply)))),
      assigned: sizeOfRanges(pools.flatMap(({ ips }) => ips)),
      pools: pools.length,
      withheld: Number(supply.total - sizeOf(supply.offered)),
    };
  }

  /** Returns what pools have, or are promised, of all Subnets that share addresses with this one. */
  #takenIn({ network }: SubnetCapacity): Spans {
    const known = this.#taken.get(network);
    if (known !== undefined) return known;
    const promised = network.capacities.flatMap(({ subnet }) => this.#promisedIn(subnet.object.name));
    const held = this.#heldIn(network);
    const taken = joinSpans([...promised, ...held.flatMap(({ spec }) => this.#known.spansOf(spec).spans)]);
    this.#taken.set(network, taken);
    return taken;
  }

  /** Counts an address that a pool has and is promised twice. */
  #mostTakenIn(network: SubnetCapacity["network"]): bigint {
    const known = this.#most.get(network);
    if (known !== undefined) return known;
    let most = 0n;
    for (const { subnet } of network.capacities) {
      const object = this.#objects.get(subnet.object.name);
      if (object === undefined || this.faultOf(object) !== undefined) continue;
      most += this.#known.assignedIn(this.#read(object)).most;
    }
    for (const { spec } of this.#heldIn(network)) most += this.#known.spansOf(spec).size;
    this.#most.set(network, most);
    return most;
  }

  /** Returns the generated pools that may have addresses of the network. */
  #heldIn({ addressSpace, family }: SubnetCapacity["network"]): IpPool[] {
    return this.#view.pools.filter(
      ({ spec }) => spec.generated !== undefined && spec.addressSpace === addressSpace && spec.family === family,
    );
  }

  #promisedIn(name: string): Span[] {
    const subnet = this.#objects.get(name);
    if (subnet === undefined || this.faultOf(subnet) !== undefined) return [];
    return this.#read(subnet).pools.flatMap(({ ips }) => [...spansOf(ips)]);
  }

  #read(subnet: ControlledSubnet): Assignments {
    const known = this.#assignments.get(subnet.name) ?? this.#view.assignmentsOf(subnet);
    this.#assignments.set(subnet.name, known);
    return known;
  }
}

function sizeOfRanges(ranges: Subnet["spec"]["ranges"]): number {
  return Number(sizeOf(spansOf(ranges)));
}
