/**
 * Answers of the API server about workloads with generated pools and no demand, so that not every pass reads them
 * again: whether they live, and the new owner of a deleted workload's pods.
 */
import { inParallel } from "../../lib/in-parallel.ts";
import { isSameWorkload, type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { PoolOwners } from "../types.ts";
import { POOL_WRITES_AT_ONCE } from "./apply-plan.ts";
import type { OwnerState } from "./model.ts";

/** Time after which a workload that is not gone is read again: milliseconds. */
const LIVENESS_RECHECK_MS = 5_000;

/** The same time for orphaned pods that a workload waits for: milliseconds. */
const AWAITED_RECHECK_MS = 1_000;

interface Known {
  readonly application: PoolOwner;
  readonly state: OwnerState;
  readonly successor: PoolOwner | undefined;
  readonly readMs: number;
}

interface LivenessReads extends Pick<PoolOwners, "readLiveness" | "readSuccession"> {
  /** Returns the names of the allocations of pods in the workload's pools that end with it. */
  readonly boundOf: (application: PoolOwner) => readonly string[];
}

export class LivenessCache {
  /** By {@link poolOwnerKey}. */
  readonly #known = new Map<string, Known>();
  readonly #nowMs: () => number;

  /** `nowMs`: monotonic, milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Drops outdated answers, and those of workloads with demands: they exist, and may wait for pods of others. */
  expire(applications: readonly PoolOwner[]): void {
    const demanded = new Set(this.#known.size === 0 ? [] : applications.map(poolOwnerKey));
    for (const [key, known] of this.#known) {
      const { application, state, readMs } = known;
      const isAwaited = state === "orphaned" && applications.some((each) => isSameWorkload(each, application));
      const untilMs = readMs + (isAwaited ? AWAITED_RECHECK_MS : LIVENESS_RECHECK_MS);
      if (demanded.has(key) || (state !== "gone" && this.#nowMs() >= untilMs)) this.#known.delete(key);
    }
  }

  get all(): ReadonlyMap<string, OwnerState> {
    return new Map([...this.#known].map(([key, { state }]) => [key, state]));
  }

  /** Returns the workload that has taken over the pods of the application. */
  successorOf(application: Pick<PoolOwner, "namespace" | "uid">): PoolOwner | undefined {
    return this.#known.get(poolOwnerKey(application))?.successor;
  }

  /** Reads the API server: no pool is taken from a live workload because of a cache (leak). */
  async read(wanted: readonly PoolOwner[], reads: LivenessReads, signal: AbortSignal): Promise<void> {
    await inParallel(wanted, POOL_WRITES_AT_ONCE, async (application) => {
      const readMs = this.#nowMs();
      this.#known.set(poolOwnerKey(application), {
        application,
        readMs,
        ...(await readState(application, reads, signal)),
      });
    });
  }

  /** Time until a workload may have to be read again: milliseconds; undefined if all are gone. */
  get dueMs(): number | undefined {
    const states = new Set([...this.#known.values()].map(({ state }) => state));
    states.delete("gone");
    if (states.size === 0) return undefined;
    return states.has("orphaned") ? AWAITED_RECHECK_MS : LIVENESS_RECHECK_MS;
  }
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
