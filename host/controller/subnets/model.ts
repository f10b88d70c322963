/**
 * What the division of Subnets looks at, and what it decides (docs/subnets.md).
 */
import type { Labels } from "../../config/label-selector.ts";
import type { Spans } from "../../core/spans.ts";
import type { PoolDemand } from "../../ipam/subnet-pools.ts";
import type { Family } from "../../net/ip.ts";
import type { AddressRoute, AddressSpec } from "../../resources/fields/address-spec.ts";
import type { PoolOwner, SubnetPoolSpec } from "../../resources/fields/subnet-pool.ts";
import type { Assignments, SubnetSpec } from "../../resources/subnet.ts";
import type { ControlledPool, ControlledSubnet } from "../objects.ts";

/** A Subnet that can be read, and what its status assigns. */
export interface CurrentSubnet {
  readonly object: ControlledSubnet;
  readonly spec: SubnetSpec;
  readonly assignments: Assignments;
}

/** A generated pool that can be read. */
export interface CurrentPool {
  readonly object: ControlledPool;
  readonly spec: AddressSpec;
  readonly generated: SubnetPoolSpec;
}

/** What became of a workload that wants nothing, as it was asked for live. */
export type Fate = "alive" | "gone" | "unknown";

export interface SubnetsView {
  readonly demands: readonly PoolDemand[];
  readonly subnets: readonly CurrentSubnet[];
  readonly pools: readonly CurrentPool[];
  /** Addresses that generated pools must leave alone, by address space: of pools made by hand, of ReservedIPs, of pools that cannot be read. */
  readonly others: readonly { readonly addressSpace: string; readonly family: Family; readonly spans: Spans }[];
  /** Names of all pools, whatever they are. */
  readonly poolNames: ReadonlySet<string>;
  /** By {@link poolOwnerKey}; absent: not known yet. */
  readonly liveness: ReadonlyMap<string, Fate>;
  /** Whether an allocation of the address is known. */
  readonly isHeld: (addressSpace: string, family: Family, address: bigint) => boolean;
  /** Since when the pool of this UID has had more than is wanted: milliseconds before now, 0 when it is new. */
  readonly excessMs: (uid: string) => number;
  /** Labels of a namespace; none of one that is not known. */
  readonly labelsOf: (namespace: string) => Labels;
  readonly maxPoolSize: number;
  /** 0: no limit. */
  readonly maxPerNamespace: number;
}

/** A demand that is not met, and why. */
export interface Shortfall {
  readonly demand: PoolDemand;
  readonly has: number;
  /** Sentences without the end of the last one. */
  readonly message: string;
  readonly reason:
    | "SubnetFull"
    | "PoolTooLarge"
    | "TooScattered"
    | "NamespaceLimit"
    | "SubnetMissing"
    | "SubnetRefused";
}

/** A pool as it is to be. */
export interface PoolTarget {
  readonly name: string;
  /** Undefined: it is to be created first, without addresses. */
  readonly now: CurrentPool | undefined;
  /** Undefined for a pool whose Subnet is not there. */
  readonly subnet: CurrentSubnet | undefined;
  readonly spans: Spans;
  readonly generated: SubnetPoolSpec;
  readonly gateway: AddressSpec["gateway"];
  readonly routes: readonly AddressRoute[];
  /** Whether it is to be written: it is another one, or something reserved for it is to be taken back for good. */
  readonly isChanged: boolean;
}

/** Subnets whose networks overlap: written together, so that what one gives no other one gives. */
export interface NetworkPlan {
  /** With how many addresses the specification of each offers. */
  readonly subnets: readonly { readonly subnet: CurrentSubnet; readonly total: bigint }[];
  readonly targets: readonly PoolTarget[];
  /** Whether a pool gets addresses that it does not have: then they are reserved first. */
  readonly grows: boolean;
}

export interface SubnetsPlan {
  /** Of these it is to be asked whether they live before more can be decided. */
  readonly ask: readonly PoolOwner[];
  readonly networks: readonly NetworkPlan[];
  /** Pools whose workload is gone, or that serve nobody any more. */
  readonly remove: readonly CurrentPool[];
  readonly shortfalls: readonly Shortfall[];
  /** Pools with more than is wanted, by UID: they give it back when that has lasted. */
  readonly excess: ReadonlySet<string>;
  /** Those of them for which it has not lasted yet. */
  readonly postponed: ReadonlySet<string>;
  /** Names of pools that wait for somebody to release an address. */
  readonly waiting: ReadonlySet<string>;
}
