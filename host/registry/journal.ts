/**
 * What an agent of a cluster writes down on its own node: its attachments, and what it still has to tell the API server. The embedded
 * registry's table with a second duty. An address that nobody wants any more is not forgotten but Cooling until the API object is known to be gone.
 * Implemented by sqlite-registry.ts; called by the cluster's registry only.
 */
import type { Allocation, Registry } from "./registry.ts";

/** The containerId of a row that was learned from the API: a NIC has the address, but which one is not known (late-del). No container is called so. */
export const UNKNOWN_CONTAINER = "-";

/** An object that names this node and that the journal lacks. */
export type Adoption = Pick<
  Allocation,
  | "space"
  | "ip"
  | "prefixLength"
  | "pool"
  | "state"
  | "owner"
  | "ifName"
  | "namespace"
  | "pod"
  | "workload"
  | "quarantine"
>;

/**
 * The methods of Registry mean here what they mean there, but for one thing: where a row would be deleted (undo, releaseUnattached, endQuarantine,
 * the orphans of a release) it becomes Cooling and due at once, nothing is reported as free, and `expire` only counts.
 * {@link Journal.forget} deletes and reports.
 */
export interface Journal extends Registry {
  /** Cooling rows whose time is over, the longest due first. */
  findDue(limit: number): Promise<readonly Allocation[]>;
  /** Rows that were never confirmed, of any state. */
  findUnconfirmed(limit: number): Promise<readonly Allocation[]>;
  /** The API server has an object for each of these: persisted, without changing the version. Rows that have changed since are confirmed, too, if they are of the same owner. */
  confirm(allocations: readonly Allocation[]): Promise<void>;
  /** The API object is gone, or was never made: deletes exactly this version of the row and reports the address as free. False when somebody has written since. */
  forget(allocation: Allocation): Promise<boolean>;
  /** Writes a confirmed row with {@link UNKNOWN_CONTAINER} when Bound. Undefined when the address has a row already, or its NIC another Bound one of the family. Cooling: it cools anew. */
  adopt(adoption: Adoption): Promise<Allocation | undefined>;
  /** Bound → Cooling, exactly this version, whatever the container: its pod is gone. Undefined when somebody has written since. */
  collect(allocation: Allocation): Promise<Allocation | undefined>;
}
