/**
 * Sets the rate at which the controller writes pools. The API server sends each such write to every node, one after the
 * other. Writes that are faster than it sends delay the events of all pools, and the ADDs that wait for them. More
 * nodes mean fewer writes.
 *
 * Writes that give or take addresses come first. The status, which people read, has a small share, and the remainder of
 * the others.
 */
import { pause } from "../kubernetes/http/retry.ts";

/**
 * Events of pools' watches that writes of addresses cause in a second, for all nodes together: 80 writes a second with
 * 5,000 nodes. One thread of the API server sends half a million (docs/develop/scale.md).
 */
export const POOL_EVENTS_PER_SECOND = 400_000;

/** Time for which unused writes are saved, to be made at once: milliseconds. */
export const POOL_WRITES_SAVED_MS = 500;

/**
 * Size of the batches in which waiting writes are made, because each batch also costs a plan and two writes of the
 * Subnet: milliseconds.
 */
export const POOL_WRITES_BATCH_MS = 300;

/** Share of writes for the status of pools in any case, beyond those of addresses. */
const POOL_STATUS_SHARE = 0.1;

/** Writes of addresses to save before the status gets any: milliseconds. A batch starts long before. */
const LEFT_BY_ADDRESSES_MS = (POOL_WRITES_BATCH_MS + POOL_WRITES_SAVED_MS) / 2;

interface PoolWritesOptions {
  readonly nodes: () => number;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  /** Default: POOL_EVENTS_PER_SECOND. */
  readonly eventsPerSecond?: number | undefined;
}

export class PoolWrites {
  readonly #options: PoolWritesOptions;
  readonly #addresses: Savings;
  readonly #status: Savings;

  constructor(options: PoolWritesOptions) {
    this.#options = options;
    this.#addresses = new Savings(options.nowMs);
    this.#status = new Savings(options.nowMs);
  }

  /** Whether a write of addresses may be made now. The last one may exceed the saved time. */
  get isOpen(): boolean {
    return this.#addresses.leftMs > 0;
  }

  /** Returns the time until this number of writes of addresses, or a batch of them, may be made: milliseconds. */
  waitMs(writes: number): number {
    return Math.max(0, Math.min(writes * this.#eachMs, POOL_WRITES_BATCH_MS) - this.#addresses.leftMs);
  }

  /** Takes this number of writes of addresses. */
  spend(writes: number): void {
    this.#addresses.spend(writes * this.#eachMs);
  }

  /** Takes one write of a status. Returns 0, or the time until the next attempt: milliseconds. */
  takeForStatus(): number {
    const ownMs = this.#status.leftMs;
    const spareMs = this.#addresses.leftMs - LEFT_BY_ADDRESSES_MS;
    if (ownMs > 0) this.#status.spend(this.#eachMs / POOL_STATUS_SHARE);
    else if (spareMs > 0) this.spend(1);
    else return 1 + Math.floor(-Math.max(ownMs, spareMs));
    return 0;
  }

  /** Waits for one write of a status. Rejects with the signal's reason. */
  async awaitForStatus(signal: AbortSignal): Promise<void> {
    for (let waitMs = this.takeForStatus(); waitMs > 0; waitMs = this.takeForStatus()) await pause(waitMs, signal);
  }

  /** Time that one write takes: milliseconds. */
  get #eachMs(): number {
    const { nodes, eventsPerSecond = POOL_EVENTS_PER_SECOND } = this.#options;
    return (Math.max(1, nodes()) * 1_000) / eventsPerSecond;
  }
}

/** Saves passing time up to a bound; writes spend it. */
class Savings {
  readonly #nowMs: () => number;
  /** All time before it is spent. */
  #spentMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Negative after a write that exceeded the saved time. */
  get leftMs(): number {
    return Math.min(POOL_WRITES_SAVED_MS, this.#nowMs() - this.#spentMs);
  }

  spend(milliseconds: number): void {
    this.#spentMs = Math.max(this.#spentMs, this.#nowMs() - POOL_WRITES_SAVED_MS) + milliseconds;
  }
}
