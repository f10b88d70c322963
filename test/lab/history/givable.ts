/** The addresses of a pool that pods may have. */
import { formatIp } from "../../../host/net/ip.ts";
import { type Range, rangeContains, rangeOfPrefix, rangesOverlap } from "../../../host/net/range.ts";
import type { IpAllocation } from "../../../host/resources/ip-allocation.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { findReserved, isReservedFor, ownNames, type ReservedIp } from "../../../host/resources/reserved-ip.ts";

export class Givable {
  readonly size: bigint;
  readonly #space: string;
  readonly #ranges: readonly Range[];
  readonly #reserved: readonly ReservedIp[];

  constructor({ spec }: IpPool, reserved: Iterable<ReservedIp>) {
    const { ranges, excluded, subnet, gateway, addressSpace } = spec;
    const { first, last } = rangeOfPrefix(subnet);
    const single = [first, last, ...(gateway === undefined ? [] : [gateway])];
    this.#reserved = [...reserved].filter((each) => each.spec.addressSpace === addressSpace);
    const ofOthers = this.#reserved.flatMap((each) => each.spec.ranges);
    const holes = [...excluded, ...ofOthers, ...single.map((ip) => ({ first: ip, last: ip }))];
    this.#space = addressSpace;
    this.#ranges = holes.reduce((left: readonly Range[], hole) => left.flatMap((each) => without(each, hole)), ranges);
    this.size = this.#ranges.reduce((sum, range) => sum + range.last.value - range.first.value + 1n, 0n);
  }

  has({ spec: { ip, addressSpace, holders, workload } }: IpAllocation): boolean {
    const { namespace = "", pod = "" } = holders[0] ?? {};
    const owned = findReserved(this.#reserved, { space: addressSpace, ip });
    if (owned?.spec.owner !== undefined) return isReservedFor(owned, ownNames(namespace, pod, workload?.member));
    return addressSpace === this.#space && this.#ranges.some((range) => rangeContains(range, ip));
  }

  toString(): string {
    return this.#ranges.map(({ first, last }) => `${formatIp(first)}-${formatIp(last)}`).join(", ");
  }
}

function without(range: Range, hole: Range): Range[] {
  if (!rangesOverlap(range, hole)) return [range];
  const left = { first: range.first, last: { ...hole.first, value: hole.first.value - 1n } };
  const right = { first: { ...hole.last, value: hole.last.value + 1n }, last: range.last };
  return [left, right].filter(({ first, last }) => first.value <= last.value);
}
