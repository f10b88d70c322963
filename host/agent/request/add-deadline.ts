/**
 * The waits of an ADD and their limits. The total is the caller's: its `signal` aborts when it hangs up (the
 * shim after `ADD_LIMIT_MS` of native/shim-limits.h), and ends every wait. Each wait has a limit of its own, in this
 * order:
 *
 * | Wait | Longest | Counted from |
 * |---|---|---|
 * | the first complete lists of the API server | SYNC_WAIT_MS | the request |
 * | a read of the pod, its namespace or its address owner, which the watches lack | POD_READ_PATIENCE_MS | each read |
 * | a claim in progress that prefetch has begun | PREFETCH_PATIENCE_MS | the begin of that claim |
 * | a pool that was created just before the ADD | NEW_POOL_WAIT_MS | each selection |
 * | the controller, which has not looked at a candidate pool yet | OBSERVED_WAIT_MS | each selection |
 * | a generated pool, or an address in it | POOL_WAIT_MS | the first attempt that found none |
 * | a block of a pool that leases its addresses | BLOCK_WAIT_MS | the first attempt that found none |
 * | other nodes that publish their cooling addresses | OTHERS_COOLING_WAIT_MS | the search's first claim that failed |
 * | an address that was released only just now | MIN_COOLING_MS | the end of the wait for other nodes |
 * | another node that takes the address off the former NIC | HAND_OVER_WAIT_MS | the first such address of the search |
 * | an answer of the API server to a claim | CLAIM_PATIENCE_MS (registry/kubernetes) | each claim |
 * | nodes that an open epoch of the registry waits for | EPOCH_WAIT_MS (ipam/first-claims.ts) | the first such claim |
 * | the pool of an address of a leased block | POOL_READ_MS | each claim |
 * | the Subnet of a pod that is refused | SUBNET_READ_MS | the refusal |
 *
 * Conflict detection takes the time of its probes besides (coordinator/probe.ts), for at most MAX_CONFLICT_CANDIDATES
 * addresses.
 */

/** Time for which an ADD waits until the watches have read everything once: milliseconds. @limit */
export const SYNC_WAIT_MS = 20_000;

/** Time for which an ADD tries to read a pod that the watch lacks: milliseconds. @limit */
export const POD_READ_PATIENCE_MS = 10_000;

/** Longest time that a prefetch may take: milliseconds. An ADD waits for it no longer. */
export const PREFETCH_PATIENCE_MS = 10_000;

/** Time for which an ADD waits for the controller to check a pool: milliseconds. Then it probes where it can. */
export const OBSERVED_WAIT_MS = 5_000;

/** Time for which an ADD that no pool can serve waits for a new pool: milliseconds. */
export const NEW_POOL_WAIT_MS = 300;

/**
 * Time for which an ADD waits for addresses of a generated pool: milliseconds. Then its pod is refused with the
 * reason, and retried by the kubelet. @limit
 */
export const POOL_WAIT_MS = 5_000;

/**
 * Time for which an ADD waits for a block that its pool leases: milliseconds. A new block rests for a minute. If it is
 * known why none comes, the ADD waits as for a generated pool. @limit
 */
export const BLOCK_WAIT_MS = 75_000;

/** Time for which an ADD waits for other nodes' cooling addresses: milliseconds. */
export const OTHERS_COOLING_WAIT_MS = 2_000;

/** A released address is never handed to another pod sooner than this: milliseconds. */
export const MIN_COOLING_MS = 2_000;

/** Time for which an ADD waits for another node's agent to fence the member's earlier pod: milliseconds. @limit */
export const HAND_OVER_WAIT_MS = 5_000;

/** Time for which a refused ADD tries to read the Subnet for its error text: milliseconds. */
export const SUBNET_READ_MS = 1_000;

/** Time for which an ADD waits for its pool, before it gives an address of a leased block: milliseconds. */
export const POOL_READ_MS = 10_000;

export interface Clock {
  /** The machine's monotonic clock: milliseconds. */
  nowMs(): number;
  /** Rejects with the signal's reason. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** One wait, from when it began. */
export class Timeout {
  readonly #clock: Clock;
  readonly #endMs: number;

  constructor(clock: Clock, milliseconds: number) {
    this.#clock = clock;
    this.#endMs = clock.nowMs() + milliseconds;
  }

  /** Milliseconds; 0 or less when the time is up. */
  get leftMs(): number {
    return this.#endMs - this.#clock.nowMs();
  }

  get isOver(): boolean {
    return this.leftMs <= 0;
  }
}

/** The time of an ADD. */
export interface AddDeadline {
  readonly clock: Clock;
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal;
}
