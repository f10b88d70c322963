/** The dependencies and the interface of the controllers, which one of several processes runs while it leads. */

import type { ConfigError } from "../config/config-error.ts";
import type { VendorConf } from "../config/vendor-conf.ts";
import type { PoolDemand } from "../ipam/subnet-pools.ts";
import type { Events } from "../kubernetes/events.ts";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import type { Reflector } from "../kubernetes/reflector.ts";
import type { RefusedWrites } from "../kubernetes/refused-writes.ts";
import type { Log } from "../lib/log.ts";
import type { ObjectBudget } from "../lib/object-budget.ts";
import type { Sample } from "../metrics/metric.ts";
import type { MeasuredPool } from "../metrics/pool-metrics.ts";
import type { MeasuredSubnet } from "../metrics/subnet-metrics.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { Workload } from "../resources/member.ts";
import type { Namespace } from "../resources/namespace.ts";
import type { Node } from "../resources/node.ts";
import type { EpochRecord } from "../resources/registry-epoch.ts";
import type { VendorConfMap } from "../resources/vendor-conf-map.ts";
import type { CachedAllocation } from "./cached-allocation.ts";
import type { Division } from "./division.ts";
import type { ControlledCoordinator, ControlledPool, ControlledReservation, ControlledSubnet } from "./objects.ts";
import type { PoolWrites } from "./pool-writes.ts";

/** One watched collection, by name. Complete before any controller starts. */
export type Cache<T> = Pick<Reflector<T>, "items" | "subscribe" | "problems">;

/** An object that claims addresses. */
export interface Claimant extends Pick<Workload, "namespace" | "name" | "uid"> {
  readonly kind: "Node" | "Service";
  /** As text; invalid text is ignored. */
  readonly addresses: readonly string[];
}

/**
 * The controller's watched objects. A cache is a hint: before anything is freed or deleted, the object is read from the
 * API server (leak).
 */
export interface Caches {
  readonly pools: Cache<ControlledPool>;
  readonly subnets: Cache<ControlledSubnet>;
  readonly reserved: Cache<ControlledReservation>;
  readonly allocations: Cache<CachedAllocation>;
  readonly coordinators: Cache<ControlledCoordinator>;
  readonly nodes: Cache<Node>;
  /** Services with addresses of load balancers, and the API server's. */
  readonly services: Cache<Claimant>;
  /** The addresses of the machines that run the API server. They may be complete later than the others. */
  readonly apiServer: readonly (Cache<readonly string[]> & { readonly isSynced: boolean })[];
  readonly namespaces: Cache<Namespace>;
  /** The one ConfigMap, under any key; empty if absent. */
  readonly vendorConf: Cache<VendorConfMap>;
  /** The registry's epoch, in the same form. */
  readonly epoch: Cache<EpochRecord>;
  /** The namespace of the ConfigMaps. */
  readonly configNamespace: string;
  /** Bounds the memory for objects that tenants write, here and in other caches of the process. */
  readonly budget: ObjectBudget;
}

/** Whether the owner of a pool or of retained addresses still exists. "unknown": the API server cannot tell. */
export type Liveness = "alive" | "gone" | "unknown";

/**
 * The state of pods with addresses of a deleted workload: the workload of the same kind, namespace and name that has
 * taken them over (`--cascade=orphan`). "orphaned": they run on without one. "ended": there are none, or they end with
 * it. "unknown": the API server cannot tell.
 */
export type Succession = PoolOwner | "orphaned" | "ended" | "unknown";

/** A workload that may name addresses of its members: in an annotation of its template, or in a claim. */
export interface NamingWorkload extends Pick<Workload, "kind" | "namespace" | "name" | "uid"> {
  readonly apiVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Of a StatefulSet. By default the workload itself is the only member. */
  readonly ordinals?: { readonly start: number; readonly replicas: number };
  /** Of a claim: its addresses, and its NIC, "" for any. */
  readonly requested?: readonly string[];
  readonly ifName?: string;
  /** Why a claim cannot be read. */
  readonly fault?: ConfigError;
}

export interface AddressOwners {
  /**
   * Reads the API server, never a cache. "gone": the owner, or the member's place in it (a StatefulSet that was scaled
   * down), does not exist, or `isNamed` returns false for its members' named addresses; it may throw ConfigError.
   */
  readLiveness(
    workload: Workload,
    signal: AbortSignal,
    isNamed?: (of: NamingWorkload | undefined) => boolean,
  ): Promise<Liveness>;
  /** Returns the cached workloads that name addresses of their members. */
  findNaming(): readonly NamingWorkload[];
  /** Returns the UID of the cached owner of the workload's kind and name; undefined if there is none. */
  findUid(workload: Workload): string | undefined;
  /**
   * Reports the UID of an owner that is gone, was scaled down or has changed, so that its retained addresses are
   * checked; and of a new one that names addresses. Returns the function that ends the subscription.
   */
  subscribe(listener: (uid: string) => void): () => void;
}

export interface Demands {
  readonly demands: readonly PoolDemand[];
  /** Workloads with invalid annotations, and the fault: a sentence without a full stop. */
  readonly faults: readonly { readonly application: PoolOwner; readonly message: string }[];
}

/** The settings that demands depend on. */
export type DemandSettings = Pick<VendorConf, "enableIPv4" | "enableIPv6" | "allowSingleFamily"> & {
  /** Name of a pod's first NIC; undefined if another network plugin provides it. */
  readonly firstNic: string | undefined;
};

/** The workloads that name Subnets, as cached: before its pool is deleted, a workload is read from the API server. */
export interface PoolOwners {
  /** Returns the current demands of all workloads. */
  demands(settings: DemandSettings): Demands;
  /** Names of the pods that name Subnets and are being deleted, by namespace. */
  readonly ending: ReadonlyMap<string, ReadonlySet<string>>;
  /** Reports that demands or ending pods may have changed. Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void;
  /** Reads the API server, never a cache. */
  readLiveness(application: PoolOwner, signal: AbortSignal): Promise<Liveness>;
  /** Reads the pods with these `allocations` of a deleted workload from the API server, never from a cache. */
  readSuccession(application: PoolOwner, allocations: readonly string[], signal: AbortSignal): Promise<Succession>;
}

/** The pods of StatefulSets and virtual machines that this process has watched. */
export interface WatchedPods {
  /** Changes after pods may have come and gone unseen; undefined while that may happen. */
  readonly period: number | undefined;
  wasSeen(uid: string): boolean;
  /** Whether all pods that existed at this resource version of an object were watched. */
  hasReached(version: string): boolean;
}

interface Owners {
  readonly addresses: AddressOwners;
  readonly pools: PoolOwners;
  readonly pods: WatchedPods;
}

interface ControllerClock {
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  /** Wall clock. */
  readonly now: () => Date;
}

export interface ControllerDeps {
  /** Refused writes rest (RefusedWrites). */
  readonly api: KubeApi;
  /** The refused writes of all controllers. */
  readonly refused: RefusedWrites;
  /** The demands that the last division of the Subnets did not meet. */
  readonly division: Division;
  /** Names of records of Services whose status is yet to have the address: the collection keeps them. */
  readonly promised: Set<string>;
  readonly caches: Caches;
  readonly owners: Owners;
  readonly events: Events;
  readonly log: Log;
  readonly clock: ControllerClock;
  /** The writes of all controllers together. */
  readonly poolWrites: PoolWrites;
  /** Returns a number in [0, 1) that spreads pauses. */
  readonly random: () => number;
  /** Aborted when this process stops leading: it must not write any more. The signal of every call. */
  readonly leading: AbortSignal;
  /** Only in a controller that every process has: whether this one leads. Default: yes. */
  readonly isLeading?: () => boolean;
}

/** Counts of a controller, for metrics. */
export interface Measurements {
  readonly pools?: () => Iterable<MeasuredPool>;
  /** The Subnets with their capacity left. */
  readonly subnets?: () => Iterable<MeasuredSubnet>;
  readonly reservations?: () => readonly Sample<"state">[];
  /** The open epoch of the registry; undefined if none is open. */
  readonly epoch?: { readonly waitingNodes: number } | undefined;
  readonly collection?: {
    /** Allocations that are checked again before any action. */
    readonly candidates: number;
    /** Number of times that each action was taken. */
    readonly actions: ReadonlyMap<string, number>;
  };
}

export interface Controller {
  /** Sentences for the log and for `berthctl`. */
  readonly problems: readonly string[];
  readonly measurements?: Measurements;
  /** Resolves when the controller no longer writes. */
  close(): Promise<void>;
}

/** Starts at once and never throws: failures are logged and retried. */
export type StartController = (deps: ControllerDeps) => Controller;
