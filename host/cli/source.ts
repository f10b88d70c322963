/**
 * Where the records that berthctl shows come from: the agent on this node's socket (node-source.ts), or the API server through a kubeconfig
 * (cluster-source.ts).
 */
import type { AllocationRecord } from "../records/allocation-record.ts";
import type { PoolRecord } from "../records/pool-record.ts";

/** Records that meet all given conditions. */
export interface AllocationFilter {
  readonly namespace?: string | undefined;
  readonly pod?: string | undefined;
  readonly pool?: string | undefined;
  readonly node?: string | undefined;
  readonly state?: string | undefined;
  /** In its usual text form. */
  readonly address?: string | undefined;
}

export interface Source {
  /** Returns what tables cover if that is not everything: a line for their reader. */
  scope(): Promise<string | undefined>;
  /** Returns the pools in the order of their names. */
  pools(): Promise<readonly PoolRecord[]>;
  /** Returns the allocations in the order of their addresses. */
  allocations(filter: AllocationFilter): Promise<readonly AllocationRecord[]>;
  /** Yields at once, and again whenever the records may have changed, until the signal ends. Asks for one kind of record in between. */
  changes(kind: "pools" | "allocations", signal: AbortSignal): AsyncGenerator<void>;
  close(): Promise<void>;
}

/** Returns whether the allocation meets the conditions. Of two pods that share an address either may. */
export function matchesFilter(record: AllocationRecord, filter: AllocationFilter): boolean {
  const { namespace, pod, pool, node, state, address } = filter;
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
    (state === undefined || record.state.toLowerCase() === state.toLowerCase()) &&
    (address === undefined || record.address === address)
  );
}
