/**
 * What the parts of the controller work with, and what each of them is. One process of several leads; its parts run while it does.
 */
import type { VendorConf } from "../config/vendor-conf.ts";
import type { PoolDemand } from "../ipam/subnet-pools.ts";
import type { Events } from "../kubernetes/events.ts";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import type { Change } from "../kubernetes/mirror.ts";
import type { Log } from "../lib/log.ts";
import type { PoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpAllocation, Workload } from "../resources/ip-allocation.ts";
import type { Namespace } from "../resources/namespace.ts";
import type { Node } from "../resources/node.ts";
import type { VendorConfMap } from "../resources/vendor-conf-map.ts";
import type { ControlledCoordinator, ControlledPool, ControlledReservation, ControlledSubnet } from "./objects.ts";

/** One watched collection. Complete before any part is started. */
export interface Cache<T> {
  /** By name. */
  readonly items: ReadonlyMap<string, T>;
  /** Told in order, after `items` has changed. Gives back what ends it. */
  subscribe(listener: (change: Change<T>) => void): () => void;
  /** Sentences: why the map may be incomplete or old. */
  readonly problems: readonly string[];
}

/** What the controller watches. A cache is a hint: before anything is freed or deleted the object is read live (allocation rule 16). */
export interface Caches {
  readonly pools: Cache<ControlledPool>;
  readonly subnets: Cache<ControlledSubnet>;
  readonly reserved: Cache<ControlledReservation>;
  readonly allocations: Cache<IpAllocation>;
  readonly coordinators: Cache<ControlledCoordinator>;
  readonly nodes: Cache<Node>;
  /** Their names and labels. */
  readonly namespaces: Cache<Namespace>;
  /** The one ConfigMap, under whatever key; none when there is none. */
  readonly vendorConf: Cache<VendorConfMap>;
}

/** Whether something that keeps addresses is still there. */
export type Liveness = "alive" | "gone" | "unknown";

export interface AddressOwners {
  /**
   * Asks the API server, never a cache. "gone": it, or the place of the member in it (a StatefulSet that was scaled down), is not there.
   * "unknown": it cannot be told.
   */
  readLiveness(workload: Workload, signal: AbortSignal): Promise<Liveness>;
  /** A workload of this UID has gone, shrunk or changed: its kept addresses are worth a look. Gives back what ends it. */
  subscribe(listener: (uid: string) => void): () => void;
}

export interface Demands {
  readonly demands: readonly PoolDemand[];
  /** Workloads whose annotations cannot be followed, and why: a sentence without its end. */
  readonly faults: readonly { readonly application: PoolOwner; readonly message: string }[];
}

/** What is to be known beside the workloads to tell what they want. */
export type DemandSettings = Pick<VendorConf, "enableIPv4" | "enableIPv6" | "allowSingleFamily"> & {
  /** Name of a pod's first NIC; undefined: the first NIC is of another network plugin. */
  readonly firstNic: string | undefined;
};

/** The workloads that name Subnets. A cache: before a pool goes with its workload, that is asked for live. */
export interface PoolOwners {
  /** What all of them want now. */
  demands(settings: DemandSettings): Demands;
  /** A workload has come, gone or changed so that its demands may be others. Gives back what ends it. */
  subscribe(listener: () => void): () => void;
  /** Asks the API server, never a cache. */
  readLiveness(application: PoolOwner, signal: AbortSignal): Promise<Liveness>;
}

/** What addresses and pools belong to. */
export interface Owners {
  readonly addresses: AddressOwners;
  readonly pools: PoolOwners;
}

export interface ControllerClock {
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  /** Wall clock, for timestamps that people read. */
  readonly now: () => Date;
}

/** What each controller gets when this process becomes the leader. */
export interface ControllerDeps {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly owners: Owners;
  readonly events: Events;
  readonly log: Log;
  readonly clock: ControllerClock;
  /** Returns a number in [0, 1) that spreads pauses. */
  readonly random: () => number;
  /** Aborted when this process stops leading: it must not write any more. Every call passes it as its signal. */
  readonly leading: AbortSignal;
}

/** A running part. */
export interface Controller {
  /** Sentences for the log and for `berthctl`. */
  readonly problems: readonly string[];
  /** Resolves when it writes no more. */
  close(): Promise<void>;
}

/** Starts at once and never throws: what fails is logged and tried again. */
export type StartController = (deps: ControllerDeps) => Controller;
