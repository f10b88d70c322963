/**
 * The liveness of workloads that have generated pools and no demand. "alive" is read again when workloads have
 * changed since; "gone" is final.
 */

import { inParallel } from "../../lib/in-parallel.ts";
import { type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { Liveness, PoolOwners } from "../types.ts";
import { POOL_WRITES_AT_ONCE } from "./apply-plan.ts";

/**
 * Time for which the liveness of a workload with generated pools and no demand is cached: milliseconds. Applies if it
 * is unknown, or workloads have changed since.
 */
const LIVENESS_RECHECK_MS = 5_000;

export class LivenessCache {
  /** By {@link poolOwnerKey}. */
  readonly #known = new Map<string, { readonly liveness: Liveness; readonly askedMs: number }>();
  readonly #nowMs: () => number;
  #isOld = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Workloads have changed. */
  changed(): void {
    this.#isOld = true;
  }

  /** Returns what is still valid. */
  get all(): ReadonlyMap<string, Liveness> {
    for (const [key, { liveness, askedMs }] of this.#known) {
      const isDue = this.#nowMs() - askedMs >= LIVENESS_RECHECK_MS;
      if (isDue && (liveness === "unknown" || (liveness === "alive" && this.#isOld))) this.#known.delete(key);
    }
    return new Map([...this.#known].map(([key, { liveness }]) => [key, liveness]));
  }

  /** Forgets workloads with demands: they exist. */
  forget(applications: Iterable<PoolOwner>): void {
    if (this.#known.size === 0) return;
    for (const application of applications) this.#known.delete(poolOwnerKey(application));
  }

  /** Reads the API server: no pool is taken from a live workload because of a cache (leak). */
  async read(
    wanted: readonly PoolOwner[],
    applications: Pick<PoolOwners, "readLiveness">,
    signal: AbortSignal,
  ): Promise<void> {
    await inParallel(wanted, POOL_WRITES_AT_ONCE, async (application) => {
      const liveness = await applications.readLiveness(application, signal);
      this.#known.set(poolOwnerKey(application), { liveness, askedMs: this.#nowMs() });
    });
  }

  /** When the next workload must be read again: milliseconds from now; undefined if none. */
  get dueMs(): number | undefined {
    const open = [...this.#known.values()].filter(
      ({ liveness }) => liveness === "unknown" || (liveness === "alive" && this.#isOld),
    );
    if (open.length === 0) this.#isOld = false;
    return open.length === 0
      ? undefined
      : Math.min(...open.map(({ askedMs }) => askedMs)) + LIVENESS_RECHECK_MS - this.#nowMs();
  }
}
