/** The cluster's part of the ADD, which the embedded mode lacks; the implementation is ../cluster/ipam.ts. */
import type { SubnetState } from "../../ipam/subnet-capacity.ts";
import type { FirstClaims } from "../../registry/epoch/registry-epoch.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, Attachment, Claim } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { PodIdentity } from "./pod-identity.ts";

/** The API server's records of all nodes. */
export type SharedRecords = Pick<
  KubernetesRegistry,
  | "awaitChange"
  | "findRetained"
  | "foresee"
  | "listUsed"
  | "markWanted"
  | "readUsageSummary"
  | "releaseRetained"
  | "retain"
>;

/** Addresses that other nodes and other pods of the same member have. */
export interface ClusterAddresses {
  /** Absent on a view, which records nothing. */
  readonly epoch?: FirstClaims | undefined;
  readonly records: SharedRecords;
  /**
   * Takes the address from the member's earlier pod on this node, which the kubelet has not detached. Returns the
   * cooling allocation; undefined if it has changed meanwhile. Rejects with CniError 11 if that pod is alive.
   */
  evictPredecessor(former: Allocation, claimant: Pick<Claim, "namespace" | "pod">): Promise<Allocation | undefined>;
  /** Returns the result of {@link evictPredecessor}, and rejects like it; the pod keeps the address. */
  foreseeEviction(former: Allocation, claimant: Pick<Claim, "namespace" | "pod">): Promise<Allocation | undefined>;
}

/** Changes of pools and settings, and addresses that become free on this node. */
export interface PoolChanges {
  /** Number of changes. */
  readonly changeCount: number;
  /** Resolves when there were more than `since`; false after so many milliseconds. Rejects with the signal's reason. */
  changed(signal: AbortSignal, wait: { readonly since: number; readonly withinMs: number }): Promise<boolean>;
}

/** Pools that the controller generates out of Subnets, or leases blocks for. */
export interface SuppliedPools {
  readonly poolChanges: PoolChanges;
  /** Tells the controller that an ADD lacks addresses of the pool. Never rejects. */
  markWanted(pool: string): Promise<void>;
  /** The state of a Subnet for a workload of the namespace. Never rejects. */
  readSubnet(of: { readonly name: string; readonly namespace: string }, signal: AbortSignal): Promise<SubnetState>;
  /** The pods of a workload found no pool: their controllers are looked up anew. */
  forgetPoolOwners(): void;
}

/** Addresses that were claimed for NICs ahead of their ADDs (prefetch). */
interface Prefetched {
  /** Waits for a claim in progress for this NIC; from now on none is begun. Rejects with the signal's reason. */
  waitForClaim(owner: string, ifName: string, signal: AbortSignal): Promise<void>;
  /** Returns unattached claims for the NIC. */
  claimedFor(owner: string, ifName: string): readonly Allocation[];
  /** The ADD has attached it. */
  used(owner: string, ifName: string): void;
  /** It does not fit: released at once, without a cooldown. */
  discard(owner: string, ifName: string): Promise<void>;
}

/** As the API server knows it, else as the runtime names it. */
export type ReportedPod = Pick<PodIdentity, "namespace" | "name" | "owner">;

export interface ClusterIpam extends ClusterAddresses, SuppliedPools {
  readonly prefetched: Prefetched;
  /** Whether another pod has the address as well, as while a machine migrates. */
  isShared(row: Allocation, signal: AbortSignal): Promise<boolean>;
  /** Reads the pool as it is now; undefined if there is none. Rejects when there is no answer. Absent on a view. */
  readPool?(name: string, signal: AbortSignal): Promise<IpPool | undefined>;
  /** Reports a refused ADD, unless the pod is unknown. */
  reportRefusal(pod: ReportedPod, error: unknown): void;
  /** Reports annotations that Berth ignores of a known pod that it serves. */
  reportIgnored(pod: ReportedPod, text: string): void;
  /** Returns whether the row's pod is gone or finished, so that no NIC of it has the address (late-del). */
  isGone(row: Allocation): Promise<boolean>;
  /** Why an address of the attachment belongs to another pod in the API server; undefined if none does. */
  findLoss(attachment: Attachment): string | undefined;
}
