/**
 * Pools and Subnets as plain sets of addresses, made one by one and not by the spans of host/: a model that is slow
 * and obvious. For networks of some hundreds of addresses.
 */
import { formatIp } from "../../../host/net/ip.ts";
import { firstIp, lastIp } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";
import type { SubnetPoolSpec } from "../../../host/resources/fields/subnet-pool.ts";
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeReservedIp } from "../../../host/resources/reserved-ip.ts";
import { decodeAssignments, decodeSubnet } from "../../../host/resources/subnet.ts";
import type { StoredObject } from "../../fakes/memory-objects.ts";

export interface PoolFacts {
  readonly name: string;
  readonly uid: string;
  readonly addressSpace: string;
  readonly family: 4 | 6;
  readonly subnet: string;
  readonly isDeleting: boolean;
  readonly addresses: ReadonlySet<string>;
  readonly generated: SubnetPoolSpec | undefined;
}

export interface SubnetFacts {
  readonly name: string;
  readonly uid: string;
  readonly addressSpace: string;
  readonly family: 4 | 6;
  readonly isDeleting: boolean;
  /** Addresses that its specification offers to pools, except those that others have. */
  readonly offered: ReadonlySet<string>;
  /** Addresses that its status reserves, by pool. */
  readonly reserved: ReadonlyMap<string, ReadonlySet<string>>;
  readonly total: unknown;
  readonly assigned: unknown;
}

const MOST = 4_096;

export function addressesOf(ranges: readonly Range[]): Set<string> {
  const addresses = new Set<string>();
  for (const { first, last } of ranges) {
    for (let { value } = first; value <= last.value; value++) {
      addresses.add(formatIp({ ...first, value }));
      if (addresses.size > MOST) throw new Error("Too many addresses for a test");
    }
  }
  return addresses;
}

/** Kind and version need not be there. */
function whole(object: StoredObject, kind: string): object {
  return { ...object, apiVersion: "ipam.vendor.io/v1", kind };
}

export function poolFactsOf(object: StoredObject): PoolFacts {
  const { name, uid, deletionTimestamp } = object.metadata;
  const { spec } = decodeIpPool(whole(object, "IPPool"), "the checker");
  const { addressSpace, family, ranges, generated } = spec;
  const isDeleting = deletionTimestamp !== undefined;
  const common = { name, uid, addressSpace, family, isDeleting, addresses: addressesOf(ranges), generated };
  return { ...common, subnet: String(object.spec.subnet) };
}

export function subnetFactsOf(object: StoredObject): SubnetFacts {
  const { name, uid, deletionTimestamp } = object.metadata;
  const { spec } = decodeSubnet(whole(object, "Subnet"), "the checker");
  const { addressSpace, family, ranges, excluded, gateway, subnet } = spec;
  const withheld = addressesOf(excluded);
  if (gateway !== undefined) withheld.add(formatIp(gateway));
  if (family === 4) for (const edge of [firstIp(subnet), lastIp(subnet)]) withheld.add(formatIp(edge));
  const offered = new Set([...addressesOf(ranges)].filter((address) => !withheld.has(address)));
  const { pools } = decodeAssignments(object.status, "the checker");
  const reserved = new Map<string, Set<string>>();
  for (const { name: pool, ips } of pools) {
    const both = [...(reserved.get(pool) ?? []), ...addressesOf(ips)];
    reserved.set(pool, new Set(both));
  }
  const { total, assigned } = object.status ?? {};
  return {
    name,
    uid,
    addressSpace,
    family,
    isDeleting: deletionTimestamp !== undefined,
    offered,
    reserved,
    total,
    assigned,
  };
}

export function reservationOf(object: StoredObject): {
  readonly addressSpace: string;
  readonly addresses: Set<string>;
} {
  const { spec } = decodeReservedIp(whole(object, "ReservedIP"), "the checker");
  return { addressSpace: spec.addressSpace, addresses: addressesOf(spec.ranges) };
}
