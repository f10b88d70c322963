/**
 * What the publisher is given, and one address while its queue works on it: what the calls so far have found out.
 */
import type { HolderStatus, NodeStatus } from "../../ipam/retention.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import type { Log } from "../../lib/log.ts";
import type { Holder, IpAllocation } from "../../resources/ip-allocation.ts";
import type { Journal } from "../journal.ts";
import type { Allocation } from "../registry.ts";
import type { CallTerms } from "./allocation-objects.ts";
import type { ForeignObjects } from "./foreign-objects.ts";
import type { KnownObject } from "./known-object.ts";

export interface ObjectSyncOptions {
  readonly api: KubeApi;
  readonly node: string;
  readonly journal: Journal;
  readonly foreign: ForeignObjects;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly log: Log;
  /** Whether others must see that an address of the pool cools (allocation rule 10). */
  readonly isPublic: (pool: string) => boolean;
  /** Whether the pod with this UID is the one that has this name now (allocation rule 8). */
  readonly isLivePod: (namespace: string, pod: string, uid: string) => Promise<boolean>;
  /** A live look at another pod of the row's member that has the address. Absent: it is gone. */
  readonly readHolderStatus?: ((row: Allocation, holder: Holder) => Promise<HolderStatus>) | undefined;
  /** A live look at another node, on which an earlier pod of the row's member has the address. Absent: it is off. Allocation rules 2 and 8. */
  readonly readNodeStatus?: ((node: string) => Promise<NodeStatus>) | undefined;
  /** Allocation rule 5: somebody else has the object of an address that this node's pod has. */
  readonly onLost: (row: Allocation, by: Allocation) => void;
  /** A Bound row was undone: a claim of it that is under way must not be answered. */
  readonly onUndone: (row: Allocation) => void;
}

export interface SyncTask {
  readonly name: string;
  readonly terms: CallTerms;
  object: KnownObject | "absent" | undefined;
  /** The object in full, if this task has looked. */
  seen: IpAllocation | undefined;
  isNew: boolean;
  /** The object cooled, and was written over. */
  isTakenOver: boolean;
}
