/** Objects as the controller has them, for the tests of its words about them. */

import type { Shortfall } from "../../../../host/controller/division.ts";
import {
  type ControlledPool,
  type ControlledReservation,
  type ControlledSubnet,
  decodeControlledPool,
  decodeControlledReservation,
  decodeControlledSubnet,
} from "../../../../host/controller/objects.ts";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { HOLDER, ipAllocation } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";

interface Extra {
  readonly metadata?: object;
  readonly status?: object;
}

function served(kind: string, name: string, spec: object, { metadata, status }: Extra) {
  const own = { name, uid: `uid-${name}`, resourceVersion: "1", generation: 1, ...metadata };
  return { apiVersion: "ipam.vendor.io/v1", kind, metadata: own, spec, status };
}

export function pool(name: string, spec: object, extra: Extra = {}): ControlledPool {
  return decodeControlledPool(served("IPPool", name, spec, extra));
}

interface Making {
  readonly ips: readonly string[];
  readonly wanted: number;
  /** Default: blue. */
  readonly from?: string;
  /** Name of the Deployment; default: the pool's. */
  readonly of?: string;
  readonly namespace?: string;
}

/** A pool of 10.6.0.0/24 for a Deployment. */
export function generatedPool(name: string, making: Making, extra: Extra = {}): ControlledPool {
  const { ips, wanted, from = "blue", of = name, namespace = "shop" } = making;
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace, name: of, uid: `uid-${of}` };
  const reason = `${wanted - 1} replicas and 1 more`;
  const generated = { subnet: from, application, interface: "eth0", reclaim: true, wanted, reason };
  return pool(name, { subnet: "10.6.0.0/24", ips, generated }, extra);
}

export function subnet(name: string, spec: object, extra: Extra = {}): ControlledSubnet {
  return decodeControlledSubnet(served("Subnet", name, spec, extra));
}

export function reserved(name: string, spec: object, extra: Extra = {}): ControlledReservation {
  return decodeControlledReservation(served("ReservedIP", name, spec, extra));
}

export const DELETED = { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } };

/** Of pod shop/web-N on n1 for the address whose last byte is N, if it is bound. */
export function allocation(
  address: string,
  pool: string,
  state: AllocationState = "Bound",
  more: Partial<IpAllocationSpec> = {},
): IpAllocation {
  const holder = { ...HOLDER, pod: `web-${ip(address).value & 255n}`, podUid: "u" };
  return ipAllocation(address, { pool, state, holders: state === "Bound" ? [holder] : [], ...more });
}

/** Of a Deployment in namespace shop, which has one address of `wanted`. */
export function shortfall(name: string, reason: Shortfall["reason"] = "SubnetFull", wanted = 4): Shortfall {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid: `uid-${name}` };
  const message = `has 1 of ${wanted}: no room`;
  const room = "has 0 free of 20 addresses, and 2 pools";
  return {
    ...{ reason, message: "" },
    demand: { ...{ application, ifName: "eth0", family: 4, subnets: ["blue"], count: wanted }, reason: "", reclaim: true, isCurrent: true }, // biome-ignore format: a row
    pool: { name, subnet: "blue", has: 1, wanted, message, room },
  };
}
