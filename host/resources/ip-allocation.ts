/**
 * The resource IPAllocation: one address that is not free. Its name is the address, so that creating it is the lock
 * (docs/allocation.md).
 * Called by the cluster's registry, which writes it, and by its watch.
 * Effects: none.
 */
import { formatIp, type Ip } from "../net/ip.ts";

/** The states of docs/allocation.md; an absent object is a free address. */
export type AllocationState = "Bound" | "Cooling" | "Kept" | "Quarantined";

/** What outlives its pods and keeps their addresses (allocation rule 8). */
export interface Workload {
  /** `StatefulSet`, `VirtualMachine` */
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** Which of the workload's pods: the pod's name, which has the ordinal in it, or the machine's. */
  readonly member: string;
}

/** A NIC that has the address. */
export interface Holder {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly ifName: string;
  readonly node: string;
}

export interface AllocationQuarantine {
  readonly reason: "Conflict" | "NodeLost";
  /** Of the machine that answered for the address; "" when unknown. */
  readonly mac: string;
  /** The node's link through which that machine can be asked; "" when unknown. */
  readonly parent: string;
}

export interface IpAllocationSpec {
  readonly ip: Ip;
  /** "" is the default space; immutable. */
  readonly addressSpace: string;
  /** Of the pool's subnet when the address was claimed; outlives the pool. */
  readonly prefixLength: number;
  readonly pool: string;
  readonly state: AllocationState;
  /** Whose agent answers for the object; a field of its own, as the API server selects by it. */
  readonly node: string;
  /** None unless Bound; two while a virtual machine migrates. */
  readonly holders: readonly Holder[];
  readonly workload?: Workload | undefined;
  readonly quarantine?: AllocationQuarantine | undefined;
  /** Of the last transition, RFC 3339; for people: nothing is decided by it. */
  readonly since?: string | undefined;
}

export interface IpAllocation {
  readonly kind: "IPAllocation";
  readonly name: string;
  readonly uid: string;
  /** Opaque; a number of at most 2^53 in decimals with etcd below. */
  readonly resourceVersion: string;
  readonly deleting: boolean;
  readonly spec: IpAllocationSpec;
}

/** `10.6.0.21`; IPv6 in eight groups of four digits with dashes; in a named space `<address>.<space>`. */
export function allocationName(ip: Ip, addressSpace: string): string {
  const address = ip.family === 4 ? formatIp(ip) : ip.value.toString(16).padStart(32, "0").match(/.{4}/g)?.join("-");
  return addressSpace === "" ? `${address}` : `${address}.${addressSpace}`;
}
