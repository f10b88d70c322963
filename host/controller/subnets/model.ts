/** The input and the result of dividing Subnets (docs/develop/subnets.md). */
import type { Labels } from "../../config/label-selector.ts";
import type { Spans } from "../../core/spans.ts";
import type { PoolDemand } from "../../ipam/subnet-pools.ts";
import type { MeasuredSubnet } from "../../metrics/subnet-metrics.ts";
import type { Family } from "../../net/ip.ts";
import type { AddressRoute, AddressSpec } from "../../resources/fields/address-spec.ts";
import type { PoolOwner, SubnetPoolSpec } from "../../resources/fields/subnet-pool.ts";
import type { Assignments, SubnetSpec } from "../../resources/subnet.ts";
import type { Shortfall } from "../division.ts";
import type { ControlledPool, ControlledSubnet } from "../objects.ts";
import type { Liveness } from "../types.ts";

/** A valid Subnet with its assignments. */
export interface CurrentSubnet {
  readonly object: ControlledSubnet;
  readonly spec: SubnetSpec;
  readonly assignments: Assignments;
}

/** A valid generated pool. */
export interface CurrentPool {
  readonly object: ControlledPool;
  readonly spec: AddressSpec;
  readonly generated: SubnetPoolSpec;
}

/** "orphaned": it is gone, and some of its pods run on that no workload has taken over. */
export type OwnerState = Liveness | "orphaned";

export interface SubnetsView {
  readonly demands: readonly PoolDemand[];
  readonly subnets: readonly CurrentSubnet[];
  /** Returns the fault of a Subnet that cannot be used; undefined if there is no such Subnet. */
  readonly faultOf: (subnet: string) => string | undefined;
  readonly pools: readonly CurrentPool[];
  /**
   * Addresses that generated pools must not use: of other pools and of their routers, of ReservedIPs, of machines of
   * the cluster, of invalid pools.
   */
  readonly others: readonly { readonly addressSpace: string; readonly family: Family; readonly spans: Spans }[];
  /** Names of all pools, valid or not. */
  readonly poolNames: ReadonlySet<string>;
  /** Returns undefined for a workload that has not been read. */
  readonly livenessOf: (application: Pick<PoolOwner, "namespace" | "uid">) => OwnerState | undefined;
  /** Returns the workload that has taken over the pods of a deleted one; undefined if none is known. */
  readonly successorOf: (application: Pick<PoolOwner, "namespace" | "uid">) => PoolOwner | undefined;
  /** Returns the addresses in the spans with a cached allocation, each with the pool that it is from. */
  readonly holdersIn: (
    spans: Spans,
    place: Pick<AddressSpec, "addressSpace" | "family">,
  ) => readonly { readonly address: bigint; readonly pool: string }[];
  /** Returns the time for which the pool has had a surplus: milliseconds; 0 for a new one. */
  readonly excessMs: (uid: string) => number;
  /** Returns whether the API server refuses for long to write the pool. */
  readonly isRefused: (pool: string) => boolean;
  /** Returns the labels of a namespace, none if it is unknown. */
  readonly labelsOf: (namespace: string) => Labels;
  /** The only namespace that may use Subnets without a rule; undefined: all may. */
  readonly closedTo: string | undefined;
  readonly maxPoolSize: number;
  /** 0: no limit. */
  readonly maxPerNamespace: number;
}

export interface PoolTarget {
  readonly name: string;
  /** undefined for a pool that must be created first, without addresses. */
  readonly now: CurrentPool | undefined;
  /** undefined if the Subnet does not exist. */
  readonly subnet: CurrentSubnet | undefined;
  readonly spans: Spans;
  readonly generated: SubnetPoolSpec;
  readonly gateway: AddressSpec["gateway"];
  readonly routes: readonly AddressRoute[];
  /** Whether the pool is written: it differs, or loses reserved addresses for good. */
  readonly isChanged: boolean;
  /** Whether it has addresses that its Subnet's status does not list. */
  readonly isUnknown: boolean;
}

/** Subnets whose networks overlap: written together, so that an address is given only once. */
export interface NetworkPlan {
  /** With the number of addresses that each specification offers. */
  readonly subnets: readonly {
    readonly subnet: CurrentSubnet;
    readonly total: bigint;
    readonly measured: MeasuredSubnet;
  }[];
  readonly targets: readonly PoolTarget[];
  /** Whether a pool gets new addresses, which must be reserved first. */
  readonly grows: boolean;
}

export interface SubnetsPlan {
  /** Workloads whose liveness must be read first. */
  readonly ask: readonly PoolOwner[];
  readonly networks: readonly NetworkPlan[];
  /** Pools whose workload is gone, or that no demand uses. */
  readonly remove: readonly CurrentPool[];
  readonly shortfalls: readonly Shortfall[];
  /** UIDs of pools with a surplus, which they give back after a while. */
  readonly excess: ReadonlySet<string>;
  /** The pools among them that keep it for now. */
  readonly postponed: ReadonlySet<string>;
  /** Names of pools that wait until an address is released. */
  readonly waiting: ReadonlySet<string>;
}
