/**
 * The source of the records that berthctl shows: the agent on this node's socket (node-source.ts), or the API server
 * through a kubeconfig (cluster-source.ts).
 */
import type { AddressRecord } from "../records/address-record.ts";
import type { AllocationRecord } from "../records/allocation-record.ts";
import type { PodRecord } from "../records/pod-record.ts";
import type { PoolRecord } from "../records/pool-record.ts";
import type { ReservationRecord } from "../records/reservation-record.ts";

/** Records that meet all given conditions. */
export interface AllocationFilter {
  readonly namespace?: string | undefined;
  readonly pod?: string | undefined;
  readonly pool?: string | undefined;
  readonly node?: string | undefined;
  readonly state?: string | undefined;
}

/** A program of Berth's. */
export interface VersionRecord {
  /** `agent`, `controller`, `API server` */
  readonly component: string;
  readonly version: string;
  /** Number of running controllers, if there may be several. */
  readonly count?: number;
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export interface Source {
  /** Returns a line for readers of tables that do not cover everything, or whose counts may be old. */
  scope(kind?: "pools" | "allocations"): Promise<string | undefined>;
  /** Returns the pools in the order of their names. */
  pools(): Promise<readonly PoolRecord[]>;
  /** Returns the allocations in the order of their addresses. */
  allocations(filter: AllocationFilter): Promise<readonly AllocationRecord[]>;
  /** Returns the ReservedIPs in the order of their names. */
  reservations(): Promise<readonly ReservationRecord[]>;
  /** Returns the known facts about an address in its usual form. `space`: at least those of this one. */
  address(address: string, space?: string): Promise<AddressRecord>;
  pod(name: PodName): Promise<PodRecord>;
  /** Returns the pods that do not run yet. Absent: that is not known. */
  waitingPods?(): Promise<readonly PodName[]>;
  /** Returns undefined if that is not known, as if this is absent. */
  hasNamespace?(name: string): Promise<boolean | undefined>;
  /** Returns the programs that answer, and their versions. */
  versions(): Promise<readonly VersionRecord[]>;
  /**
   * Yields at once, and after each possible change of the records of one kind, until the signal ends. `note` is told
   * why no changes come, and when they come again.
   */
  changes(kind: "pools" | "allocations", signal: AbortSignal, note: (text: string) => void): AsyncGenerator<void>;
  close(): Promise<void>;
}

/** Returns whether the allocation meets the conditions. Either of two pods that share an address may. */
export function matchesFilter(record: AllocationRecord, filter: AllocationFilter): boolean {
  const { namespace, pod, pool, node, state } = filter;
  const holders = [record, ...(record.second === undefined ? [] : [record.second])];
  const isHeld = holders.some(
    (holder) =>
      (namespace === undefined || holder.namespace === namespace) &&
      (pod === undefined || holder.pod === pod) &&
      (node === undefined || holder.node === node),
  );
  return (
    isHeld &&
    (pool === undefined || record.pool === pool) &&
    (state === undefined || record.state.toLowerCase() === state.toLowerCase())
  );
}

/** Returns whether the address is the pod's, or is retained for it. */
export function isOfPod(record: AllocationRecord, { namespace, name }: PodName): boolean {
  const { workload } = record;
  const isMember = workload?.namespace === namespace && workload.member === name;
  return matchesFilter(record, { namespace, pod: name }) || (record.state === "Kept" && isMember);
}
