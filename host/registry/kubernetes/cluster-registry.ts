/**
 * What the cluster's registry can do beyond the port, and what it needs; kubernetes-registry.ts implements it.
 */
import type { HolderStatus, NodeStatus } from "../../ipam/retention.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import type { Log } from "../../lib/log.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import type { Adoption } from "../journal.ts";
import type { Allocation, Registry } from "../registry.ts";
import type { SqliteRegistryOptions } from "../sqlite/registry.ts";
import type { ObjectChange } from "./object-sync.ts";

export interface KubernetesRegistryOptions extends SqliteRegistryOptions {
  readonly api: KubeApi;
  /** This node's name. */
  readonly node: string;
  readonly random: () => number;
  readonly log: Log;
  /** How many addresses the pool has; undefined when there is no such pool. */
  readonly poolSize: (pool: string) => number | undefined;
  /** Which share of the pool is in use as the pool cache knows, 0 to 1. */
  readonly usedShare?: (pool: string) => number | undefined;
  /** A live look: is the pod with this UID the one that has this name now? Allocation rule 8. */
  readonly isLivePod: (namespace: string, pod: string, uid: string) => Promise<boolean>;
  /**
   * A live look at another pod of the row's member that has the address (allocation rule 8): it has ended; it runs the same machine, which
   * migrates, so that both have the address; or it lives. Absent: it has ended.
   */
  readonly readHolderStatus?: (row: Allocation, holder: Holder) => Promise<HolderStatus>;
  /** A live look: is the row's pod gone or finished? Allocation rule 1. */
  readonly isPodGone: (row: Allocation) => Promise<boolean>;
  /** A live look at another node, on which an earlier pod of the row's member has the address. Absent: it is off. Allocation rules 2 and 8. */
  readonly readNodeStatus?: ((node: string) => Promise<NodeStatus>) | undefined;
  /** Allocation rule 5: somebody else has the object of an address that a pod here has. Nothing is changed. */
  readonly onLost: (row: Allocation, by: Allocation) => void;
  /** Whether {@link onLost} was told of the row and that still holds: an ADD asks for the object before it is answered with it. Absent: of no row. */
  readonly isLost?: (row: Allocation) => boolean;
}

/** The port, and what the reconciler needs. */
export interface KubernetesRegistry extends Registry {
  /** The watch's news of objects that name this node. One that vanished is made again if its row is Bound. */
  observe(change: ObjectChange): void;
  /** Writes a row for an object of this node that the journal lacks; as Cooling when nobody needs it. Undefined when the address has a row. */
  adopt(adoption: Adoption): Promise<Allocation | undefined>;
  /** The row's pod is gone: Bound → Cooling, if nobody has written since. */
  collect(row: Allocation): Promise<Allocation | undefined>;
  /** Allocation rule 8: what {@link Registry.findRetained} found Kept and its member cannot have any more cools here, unless somebody was faster. */
  releaseRetained(kept: readonly Allocation[]): Promise<void>;
  /** The API server lacks the row's object: looks again, and makes it so. */
  republish(row: Allocation): Promise<void>;
  /** Somebody wants the pool: its addresses that cool here are shown. */
  publishCooling(pool: string): Promise<void>;
  /** Whether another pod has the address, too: a machine migrates. Asked of the API server; rejects with RegistryError. */
  isShared(row: Allocation, signal: AbortSignal): Promise<boolean>;
  /**
   * Waits until the object of an address of another node is another than was met. False when it is the same after so many milliseconds. Rejects with
   * the signal's reason, and with RegistryError.
   */
  awaitChange(row: Allocation, withinMs: number, signal: AbortSignal): Promise<boolean>;
  /** Asks all nodes for that; the ADD that was refused does. */
  markWanted(pool: string): Promise<void>;
  /** When nothing runs behind an answer any more. */
  idle(): Promise<void>;
  /** How many objects are known, and how many addresses wait for the API server. */
  readonly size: { readonly known: number; readonly backlog: number };
}
