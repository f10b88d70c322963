/**
 * The liveness of workloads that have generated pools and no demand, and who has taken over the pods of one that is
 * gone. "alive" is read again when workloads have changed since, "orphaned" until the pods have ended or another
 * workload has them; "gone" is final.
 */

import { inParallel } from "../../lib/in-parallel.ts";
import { isSameWorkload, type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { PoolOwners } from "../types.ts";
import { POOL_WRITES_AT_ONCE } from "./apply-plan.ts";
import type { OwnerState } from "./model.ts";

/**
 * Time for which the liveness of a workload with generated pools and no demand is cached: milliseconds. Applies if it
 * is unknown, its pods are orphaned, or workloads have changed since.
 */
const LIVENESS_RECHECK_MS = 5_000;

/** The same for orphaned pods while a workload waits for them: milliseconds. */
const AWAITED_RECHECK_MS = 1_000;

interface Known {
  readonly application: PoolOwner;
  readonly state: OwnerState;
  readonly successor: PoolOwner | undefined;
  readonly askedMs: number;
  /** A workload of its kind and name has a demand. */
  isAwaited: boolean;
}

interface LivenessReads extends Pick<PoolOwners, "readLiveness" | "readSuccession"> {
  /** Returns the names of the allocations that pods have of the workload's pools which end with it. */
  readonly boundOf: (application: PoolOwner) => readonly string[];
}

export class LivenessCache {
  /** By {@link poolOwnerKey}. */
  readonly #known = new Map<string, Known>();
  readonly #nowMs: () => number;
  #changedMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Workloads have changed. */
  changed(): void {
    this.#changedMs = this.#nowMs();
  }

  /** Returns what is still valid. */
  get all(): ReadonlyMap<string, OwnerState> {
    for (const [key, known] of this.#known) {
      if (this.#isOpen(known) && this.#nowMs() >= dueOf(known)) this.#known.delete(key);
    }
    return new Map([...this.#known].map(([key, { state }]) => [key, state]));
  }

  /** Returns the workload that has taken over the pods of the application. */
  successorOf(application: Pick<PoolOwner, "namespace" | "uid">): PoolOwner | undefined {
    return this.#known.get(poolOwnerKey(application))?.successor;
  }

  /** Takes the workloads with demands: they exist, and may wait for the pods of others. */
  demanded(applications: readonly PoolOwner[]): void {
    if (this.#known.size === 0) return;
    for (const application of applications) this.#known.delete(poolOwnerKey(application));
    for (const known of this.#known.values()) {
      if (known.state === "orphaned")
        known.isAwaited = applications.some((each) => isSameWorkload(each, known.application));
    }
  }

  /** Reads the API server: no pool is taken from a live workload because of a cache (leak). */
  async read(wanted: readonly PoolOwner[], reads: LivenessReads, signal: AbortSignal): Promise<void> {
    await inParallel(wanted, POOL_WRITES_AT_ONCE, async (application) => {
      const known = { application, askedMs: this.#nowMs(), isAwaited: true };
      const found = await readState(application, reads, signal);
      this.#known.set(poolOwnerKey(application), { ...known, ...found });
    });
  }

  /** When the next workload must be read again: milliseconds from now; undefined if none. */
  get dueMs(): number | undefined {
    const open = [...this.#known.values()].filter((known) => this.#isOpen(known));
    return open.length === 0 ? undefined : Math.min(...open.map(dueOf)) - this.#nowMs();
  }

  #isOpen({ state, askedMs }: Known): boolean {
    return state === "unknown" || state === "orphaned" || (state === "alive" && askedMs <= this.#changedMs);
  }
}

function dueOf({ state, askedMs, isAwaited }: Known): number {
  return askedMs + (state === "orphaned" && isAwaited ? AWAITED_RECHECK_MS : LIVENESS_RECHECK_MS);
}

async function readState(
  application: PoolOwner,
  { readLiveness, readSuccession, boundOf }: LivenessReads,
  signal: AbortSignal,
): Promise<Pick<Known, "state" | "successor">> {
  const state = await readLiveness(application, signal);
  const bound = state === "gone" ? boundOf(application) : [];
  if (bound.length === 0) return { state, successor: undefined };
  const succession = await readSuccession(application, bound, signal);
  if (typeof succession === "object") return { state, successor: succession };
  return { state: succession === "ended" ? "gone" : succession, successor: undefined };
}
