/**
 * Keeps one IPPoolUsage per pool up to date, and the rarely written counts in the pool's own status. Both derive from
 * the cached allocations; a new leader writes only differences.
 */

import type { Change } from "../../kubernetes/mirror.ts";
import { statusPath } from "../../kubernetes/paths.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import { RateLimit } from "../../lib/rate-limit.ts";
import { isSameList } from "../../lib/same-list.ts";
import type { MeasuredPool } from "../../metrics/pool-metrics.ts";
import { equalIp } from "../../net/ip.ts";
import { equalRange } from "../../net/range.ts";
import { IP_POOLS } from "../../resources/collections.ts";
import { type ControlledPool, valuesOf } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { Controller, ControllerDeps, Measurements, StartController } from "../types.ts";
import { type Counts, countsDueMs, POOL_COUNTS_RATE, USAGE_MIN_MS, usageDueMs } from "./plan-usage.ts";
import { UsageCounter } from "./usage-counter.ts";
import { UsageObjects } from "./usage-objects.ts";

/** Interval at which all usage objects are read to find foreign changes: milliseconds. */
const USAGE_RELOAD_MS = 600_000;

/** Shortest time between two passes: a quarter of the shortest interval between writes. */
const REST_MS = USAGE_MIN_MS / 4;

export const startUsage: StartController = (deps) => new UsageController(deps);

class UsageController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #counter = new UsageCounter();
  readonly #objects: UsageObjects;
  readonly #loop: PeriodicWorker;
  readonly #countsRate: RateLimit;
  #isFollowing = false;
  #loadedMs = Number.NEGATIVE_INFINITY;
  /** By pool: the time of this process's last write of its usage object, and of its status. */
  readonly #wroteMs = new Map<string, number>();
  readonly #countedMs = new Map<string, number>();
  /** Pools whose object or status may be out of date. */
  readonly #open = new Set<string>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches } = deps;
    this.#countsRate = new RateLimit(POOL_COUNTS_RATE, deps.clock.nowMs);
    for (const [key, value] of caches.allocations.items) {
      this.#counter.apply({ kind: "set", key, value, before: undefined });
    }
    this.#objects = new UsageObjects(deps.api, deps.leading);
    this.#loop = startReconciling(deps, {
      failure: "Writing the usage of pools failed",
      work: () => this.#reconcile(),
      restMs: () => REST_MS,
      follow: (wake) => {
        const reshape = (): void => {
          this.#isFollowing = false;
          wake();
        };
        return [
          caches.allocations.subscribe((change) => {
            this.#counter.apply(change);
            wake();
          }),
          caches.pools.subscribe((change) => {
            this.#open.add(change.key);
            if (isReshaped(change)) reshape();
            else wake();
          }),
          caches.reserved.subscribe(reshape),
        ];
      },
    });
  }

  get problems(): readonly string[] {
    return this.#loop.problems;
  }

  get measurements(): Measurements {
    return { pools: () => this.#measurePools() };
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  async #reconcile(): Promise<number | undefined> {
    const { clock, caches } = this.#deps;
    if (clock.nowMs() - this.#loadedMs >= USAGE_RELOAD_MS) {
      await this.#objects.load();
      this.#loadedMs = clock.nowMs();
      for (const name of caches.pools.items.keys()) this.#open.add(name);
    }
    this.#follow();
    for (const name of this.#counter.changed) this.#open.add(name);
    this.#counter.changed.clear();
    const refusals = new RefusalsOf();
    let nextMs = USAGE_RELOAD_MS;
    for (const name of [...this.#open]) {
      const dueMs = await this.#sync(name, refusals);
      if (dueMs === undefined) this.#open.delete(name);
      else nextMs = Math.min(nextMs, dueMs);
    }
    for (const name of this.#objects.known.keys()) {
      if (!caches.pools.items.has(name)) await refusals.attempt(() => this.#objects.drop(name));
    }
    return refusals.require(nextMs);
  }

  *#measurePools(): Generator<MeasuredPool> {
    for (const [name, { value }] of this.#deps.caches.pools.items) {
      const counts = this.#counter.countsOf(name);
      if (value === undefined || counts === undefined) continue;
      const { Bound: bound, Cooling: cooling, Kept: retained, Quarantined: quarantined } = this.#counter.statesOf(name);
      const states = { free: counts.total - counts.used, bound, cooling, retained, quarantined };
      const { subnet, generated } = value.spec;
      yield { name, family: subnet.ip.family, subnet: generated?.subnet, size: counts.total, states };
    }
  }

  #follow(): void {
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    const { pools, reserved, allocations } = this.#deps.caches;
    const [known, kept] = [valuesOf(pools.items.values()), valuesOf(reserved.items.values())];
    this.#counter.follow(known, kept, allocations.items.values());
    for (const map of [this.#wroteMs, this.#countedMs]) {
      for (const name of map.keys()) if (!pools.items.has(name)) map.delete(name);
    }
  }

  /** Makes the pool's due writes. Returns the time until the next one: milliseconds; undefined if all is written. */
  async #sync(name: string, refusals: RefusalsOf): Promise<number | undefined> {
    const pool = this.#deps.caches.pools.items.get(name);
    const now = this.#counter.countsOf(name);
    if (pool === undefined || now === undefined) return undefined;
    const dues = [
      await refusals.attempt(() => this.#syncObject(pool, now), USAGE_RELOAD_MS),
      await refusals.attempt(() => this.#syncCounts(pool, now), USAGE_RELOAD_MS),
    ];
    const open = dues.filter((due) => due !== undefined);
    return open.length === 0 ? undefined : Math.min(...open);
  }

  async #syncObject(pool: ControlledPool, now: Counts): Promise<number | undefined> {
    const { clock } = this.#deps;
    const sinceMs = clock.nowMs() - (this.#wroteMs.get(pool.name) ?? Number.NEGATIVE_INFINITY);
    const written = this.#objects.known.get(pool.name)?.counts;
    const dueMs = usageDueMs({ now, written, sinceMs, pools: this.#deps.caches.pools.items.size });
    if (dueMs > 0) return dueMs;
    const usage = this.#counter.usageOf(pool.name);
    if (usage === undefined || this.#objects.isWritten(pool, usage)) return undefined;
    this.#wroteMs.set(pool.name, clock.nowMs());
    return (await this.#objects.write(pool, usage)) ? undefined : USAGE_MIN_MS;
  }

  async #syncCounts(pool: ControlledPool, now: Counts): Promise<number | undefined> {
    const { api, leading: signal, clock, poolWrites } = this.#deps;
    const sinceMs = clock.nowMs() - (this.#countedMs.get(pool.name) ?? Number.NEGATIVE_INFINITY);
    const written = countsOfStatus(pool.status);
    const dueMs = countsDueMs({ now, written, sinceMs });
    if (dueMs === undefined || dueMs > 0) return dueMs;
    if (written?.total === now.total && !this.#countsRate.take("")) return USAGE_MIN_MS;
    const turnMs = poolWrites.takeForStatus();
    if (turnMs > 0) return turnMs;
    this.#countedMs.set(pool.name, clock.nowMs());
    // Other keys of the status keep their values: an agent may have marked the pool as wanted.
    const { name, uid, resourceVersion } = pool;
    const counted = clock.now().toISOString();
    const body = { status: { total: now.total, used: now.used, free: now.total - now.used, counted } };
    if (await patchIfSame(api, { path: statusPath(IP_POOLS, { name }), uid, resourceVersion, body, signal }))
      return undefined;
    // Another writer was faster; the watch reports its version.
    this.#countedMs.delete(name);
    return USAGE_MIN_MS;
  }
}

/** Undefined also for the status of an older controller, which has no `free`. */
function countsOfStatus({ total, used, free }: ControlledPool["status"]): Counts | undefined {
  const isComplete = typeof total === "number" && typeof used === "number" && typeof free === "number";
  return isComplete ? { total, used } : undefined;
}

/** Whether the pool may have other addresses, or serve other pods. */
export function isReshaped(change: Change<ControlledPool>): boolean {
  if (change.kind === "gone" || change.before === undefined) return true;
  const [before, now] = [change.before, change.value];
  if (before.uid !== now.uid || before.generation !== now.generation) return true;
  const [old, spec] = [before.value?.spec, now.value?.spec];
  if (!isSameList(old?.formerRouters ?? [], spec?.formerRouters ?? [], equalIp)) return true;
  return now.value?.source !== undefined && !isSameList(old?.ranges ?? [], spec?.ranges ?? [], equalRange);
}
