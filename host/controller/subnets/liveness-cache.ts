/**
 * Of workloads that want nothing while pools of theirs are there: whether they live, as the API server was asked. That one lives is asked again
 * when workloads have changed since; that one is gone is for good.
 * Effects: asks through the port Applications.
 */

import { inParallel } from "../../lib/in-parallel.ts";
import { type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { PoolOwners } from "../types.ts";
import { POOL_WRITES_AT_ONCE } from "./apply-plan.ts";
import type { Fate } from "./model.ts";

/** A workload that wants nothing while a pool of its is there is asked for again after this, if nobody could be asked, or workloads have changed: milliseconds. @limit */
export const LIVENESS_RECHECK_MS = 5_000;

export class LivenessCache {
  /** By {@link poolOwnerKey}. */
  readonly #known = new Map<string, { readonly fate: Fate; readonly askedMs: number }>();
  readonly #nowMs: () => number;
  #isOld = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Workloads have come, gone or changed. */
  changed(): void {
    this.#isOld = true;
  }

  /** Only what may still be so. */
  get all(): ReadonlyMap<string, Fate> {
    for (const [key, { fate, askedMs }] of this.#known) {
      const isDue = this.#nowMs() - askedMs >= LIVENESS_RECHECK_MS;
      if (isDue && (fate === "unknown" || (fate === "alive" && this.#isOld))) this.#known.delete(key);
    }
    return new Map([...this.#known].map(([key, { fate }]) => [key, fate]));
  }

  /** These want something: who wants is there. */
  forget(applications: Iterable<PoolOwner>): void {
    for (const application of applications) this.#known.delete(poolOwnerKey(application));
  }

  /** Never by a cache alone: a pool is not taken from a workload that is there (allocation rule 16). */
  async read(
    wanted: readonly PoolOwner[],
    applications: Pick<PoolOwners, "readLiveness">,
    signal: AbortSignal,
  ): Promise<void> {
    await inParallel(wanted, POOL_WRITES_AT_ONCE, async (application) => {
      const fate = await applications.readLiveness(application, signal);
      this.#known.set(poolOwnerKey(application), { fate, askedMs: this.#nowMs() });
    });
  }

  /** When one is to be asked for again: milliseconds from now; undefined: none is. */
  get dueMs(): number | undefined {
    const open = [...this.#known.values()].filter(
      ({ fate }) => fate === "unknown" || (fate === "alive" && this.#isOld),
    );
    if (open.length === 0) this.#isOld = false;
    return open.length === 0
      ? undefined
      : Math.min(...open.map(({ askedMs }) => askedMs)) + LIVENESS_RECHECK_MS - this.#nowMs();
  }
}
