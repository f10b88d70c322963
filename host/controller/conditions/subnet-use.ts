/** Each Subnet's supply for pools, and the pools that have it, computed like the division of Subnets. */

import { joinSpans, type Span, type Spans, sharedSpans, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { messageOf } from "../../lib/describe.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import type { Assignments, Subnet } from "../../resources/subnet.ts";
import type { ControlledSubnet } from "../objects.ts";
import { openCapacities, type SubnetCapacity } from "../subnets/plan/capacity.ts";
import { readAssignments } from "../subnets/read-assignments.ts";

interface SubnetUseView {
  readonly pools: readonly IpPool[];
  readonly subnets: readonly ControlledSubnet[];
  readonly reserved: readonly ReservedIp[];
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
  /** By network. */
  readonly #taken = new Map<SubnetCapacity["network"], Spans>();
  readonly #numbers = new Map<string, SubnetNumbers>();

  constructor(view: SubnetUseView) {
    this.#view = view;
    this.#objects = new Map(view.subnets.map((subnet) => [subnet.name, subnet]));
    const readable = view.subnets.flatMap((object) => {
      return object.value === undefined ? [] : [{ object, spec: object.value.spec, assignments: NOTHING }];
    });
    const byHand = view.pools.filter(({ spec }) => spec.generated === undefined);
    const others = [...byHand, ...view.reserved].map(({ spec }) => ({ ...spec, spans: spansOf(spec.ranges) }));
    this.#supplies = openCapacities({ subnets: readable, others });
  }

  subnet(name: string): ControlledSubnet | undefined {
    return this.#objects.get(name);
  }

  /** Returns how many of the pool's addresses its Subnet still offers; all of them if the Subnet does not exist. */
  sizeOf({ spec }: IpPool): number {
    const offered = this.#supplies.get(spec.generated?.subnet ?? "")?.offered;
    const spans = spansOf(spec.ranges);
    return Number(sizeOf(offered === undefined ? spans : sharedSpans(spans, offered)));
  }

  /** Returns why the status of the Subnet is invalid, without a full stop; undefined if it is valid. */
  faultOf(subnet: ControlledSubnet): string | undefined {
    try {
      readAssignments(subnet);
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
    const entries = readAssignments(subnet).pools.filter(({ name }) => name === pool);
    return entries.length === 0 ? undefined : sizeOfRanges(entries.flatMap(({ ips }) => ips));
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
    const { pools } = readAssignments(subnet);
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
    const taken = joinSpans([...promised, ...held.flatMap(({ spec }) => spansOf(spec.ranges))]);
    this.#taken.set(network, taken);
    return taken;
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
    return readAssignments(subnet).pools.flatMap(({ ips }) => [...spansOf(ips)]);
  }
}

function sizeOfRanges(ranges: Subnet["spec"]["ranges"]): number {
  return Number(sizeOf(spansOf(ranges)));
}
