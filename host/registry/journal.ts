/**
 * The record of a cluster's node: its attachments, and pending writes to the API server. It is the embedded registry's
 * table, but a row stays, as Cooling, until the API server is known to have no object for it.
 */
import type { PoolAddress } from "../ipam/pick.ts";
import type { Allocation, FileRegistry } from "./registry.ts";

/**
 * The containerId of a row that was adopted from the API server: the container that has the address is unknown
 * (late-del). No container has this ID.
 */
export const UNKNOWN_CONTAINER = "-";

/** An object that names this node and that the journal lacks. */
export type Adoption = Omit<PoolAddress, "routers"> &
  Pick<Allocation, "state" | "owner" | "namespace" | "pod" | "workload" | "claim" | "quarantine">;

/** The knowledge of an address owner. */
export interface SeenOwner {
  readonly key: string;
  readonly isSeen: boolean;
}

/**
 * A row of a claim names the address owner only if it had the address before, until {@link retain}: addresses that a
 * killed agent has claimed and not answered are not retained. Registry's methods differ in one more respect: a row that
 * they would delete (undo, endQuarantine, claims that were not attached) becomes Cooling and due at once, and no
 * address is reported as free: {@link Journal.forget} alone deletes and reports.
 */
export interface Journal extends FileRegistry {
  /**
   * The claimed addresses are their address owner's from now on (retention). Until then one that was new to it
   * becomes free when its pod goes. Rejects with RegistryError if one of them has changed.
   */
  retain(claimed: readonly Allocation[]): Promise<void>;
  /** Returns Cooling rows whose cooldown is over, the longest due first. */
  findDue(limit: number): Promise<readonly Allocation[]>;
  /**
   * Records owner, claim and {@link Allocation.isConfirmed} of each row that has not changed otherwise. The version
   * stays. Returns these rows.
   */
  record(rows: readonly Allocation[]): Promise<readonly Allocation[]>;
  /**
   * The object was deleted or never created, or is another pod's: deletes the row if unchanged, and reports the
   * address as free unless `isTaken`. Returns whether it was deleted.
   */
  forget(allocation: Allocation, isTaken?: boolean): Promise<boolean>;
  /**
   * Writes a confirmed row: with {@link UNKNOWN_CONTAINER} if a NIC may have it; a Cooling one starts to cool. Returns
   * undefined if the address has a row, or its NIC another Bound address of the family.
   */
  adopt(adoption: Adoption): Promise<Allocation | undefined>;
  /** Returns the records of {@link noteOwner}, the oldest first. */
  readOwners(): Promise<readonly SeenOwner[]>;
  /** Records whether the address owner was seen. */
  noteOwner(key: string, isSeen: boolean): Promise<void>;
  /**
   * Records this machine. If the journal was another machine's, deletes its remains: all rows that are not Bound, as
   * Bound rows of another boot cool. Returns the number of rows, and reports their addresses as free.
   */
  noteMachine(machine: string): Promise<number>;
}
