/** Each Subnet's supply for pools, and the pools that have it, computed like the division of Subnets. */

import { type Spans, sharedSpans, sizeOf, spansOf, withoutSpans } from "../../core/spans.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Range } from "../../net/range.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Assignments } from "../../resources/subnet.ts";
import type { ControlledPool, ControlledReservation, ControlledSubnet } from "../objects.ts";
import { openCapacities, type SubnetCapacity } from "../subnets/plan/capacity.ts";
import { readAssignments } from "../subnets/read-assignments.ts";

export interface SubnetUseView {
  readonly pools: readonly ControlledPool[];
  readonly subnets: readonly ControlledSubnet[];
  readonly reserved: readonly ControlledReservation[];
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
  /** Those that can be read. */
  readonly pools: readonly IpPool[];
  readonly #objects: ReadonlyMap<string, ControlledSubnet>;
  readonly #supplies: ReadonlyMap<string, SubnetCapacity>;
  /** One for all Subnets that overlap: each has all generated pools of the family. */
  readonly #taken = new Map<SubnetCapacity["network"], Spans>();
  readonly #numbers = new Map<ControlledSubnet, SubnetNumbers | undefined>();

  constructor({ pools, subnets, reserved }: SubnetUseView) {
    this.pools = pools.flatMap(({ value }) => value ?? []);
    this.#objects = new Map(subnets.map((subnet) => [subnet.name, subnet]));
    const readable = subnets.flatMap((object) => {
      return object.value === undefined ? [] : [{ object, spec: object.value.spec, assignments: NOTHING }];
    });
    const byHand = this.pools.filter(({ spec }) => spec.generated === undefined);
    const withheld = [...byHand, ...reserved.flatMap(({ value }) => value ?? [])];
    const others = withheld.map(({ spec }) => ({ ...spec, spans: spansOf(spec.ranges) }));
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
    const read = assignmentsOr(subnet, messageOf);
    return typeof read === "string" ? read : undefined;
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
    return this.#numbers.getOrInsertComputed(subnet, () => this.#count(subnet));
  }

  #count(subnet: ControlledSubnet): SubnetNumbers | undefined {
    const supply = this.#supplies.get(subnet.name);
    if (supply === undefined) return undefined;
    const { pools } = readAssignments(subnet);
    const taken = this.#taken.getOrInsertComputed(supply.network, (network) => this.#takenIn(network));
    return {
      total: Number(supply.total),
      free: Number(sizeOf(withoutSpans(supply.offered, taken))),
      assigned: sizeOfRanges(pools.flatMap(({ ips }) => ips)),
      pools: pools.length,
      withheld: Number(supply.total - sizeOf(supply.offered)),
    };
  }

  /** Returns the addresses that pools have, or are promised, in all Subnets of the network. */
  #takenIn({ addressSpace, family, capacities }: SubnetCapacity["network"]): Spans {
    const promised = capacities.flatMap(({ subnet }) => assignmentsOr(subnet.object, () => NOTHING).pools);
    const held = this.pools.filter(
      ({ spec }) => spec.generated !== undefined && spec.addressSpace === addressSpace && spec.family === family,
    );
    return spansOf([...promised.flatMap(({ ips }) => ips), ...held.flatMap(({ spec }) => spec.ranges)]);
  }
}

/** Returns the result of `otherwise` if the status of the Subnet is invalid. */
function assignmentsOr<T>(subnet: ControlledSubnet, otherwise: (error: unknown) => T): Assignments | T {
  try {
    return readAssignments(subnet);
  } catch (error) {
    return otherwise(error);
  }
}

function sizeOfRanges(ranges: readonly Range[]): number {
  return Number(sizeOf(spansOf(ranges)));
}
