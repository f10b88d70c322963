/**
 * Keeps a deleted pool until its last address is free (pool-changes). Agents refuse new addresses from the moment of
 * deletion; the release of the last one triggers the removal of the finalizer.
 */

import { callIfThere } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { collectionPath, objectPath } from "../../kubernetes/paths.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import { IP_ALLOCATIONS, IP_POOLS } from "../../resources/collections.ts";
import { type ControlledPool, decodeControlledPool } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { IN_USE_FINALIZER, planFinalizers } from "./plan-finalizers.ts";

/** Pools whose finalizers are set, or removed, at once. */
const POOLS_AT_ONCE = 8;

/** Shortest time between two passes, for a deleted pool whose addresses become free one by one: milliseconds. */
const REST_MS = 200;

export const startFinalizers: StartController = (deps) => new FinalizerController(deps).loop;

class FinalizerController {
  readonly #deps: ControllerDeps;
  readonly loop: PeriodicWorker;
  /** Time of the first sight of a pool's deletion, by UID. */
  readonly #leavingMs = new Map<string, number>();
  /** Names of pools in deletion. */
  readonly #leaving = new Set<string>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches } = deps;
    for (const pool of caches.pools.items.values()) this.#notice(pool);
    this.loop = startReconciling(deps, {
      failure: "Writing the finalizers of pools failed",
      work: () => this.#reconcile(),
      restMs: () => REST_MS,
      follow: (wake) => [
        caches.pools.subscribe((change) => {
          this.#onPool(change);
          wake();
        }),
        caches.allocations.subscribe(({ before }) => {
          if (before !== undefined && this.#leaving.has(before.spec.pool)) wake();
        }),
      ],
    });
  }

  #onPool(change: Change<ControlledPool>): void {
    const { before } = change;
    if (change.kind === "gone" || (before !== undefined && before.uid !== change.value.uid)) {
      if (before !== undefined) this.#leavingMs.delete(before.uid);
      this.#leaving.delete(change.key);
    }
    if (change.kind === "set") this.#notice(change.value);
  }

  #notice({ name, uid, deleting }: ControlledPool): void {
    if (!deleting || this.#leavingMs.has(uid)) return;
    this.#leavingMs.set(uid, this.#deps.clock.nowMs());
    this.#leaving.add(name);
  }

  async #reconcile(): Promise<number | undefined> {
    const { caches, clock } = this.#deps;
    const held = this.#heldPools();
    const { mark, ask, nextMs } = planFinalizers({
      pools: caches.pools.items.values(),
      isHeld: (pool) => held.has(pool),
      leavingMs: ({ uid }) => clock.nowMs() - (this.#leavingMs.get(uid) ?? clock.nowMs()),
    });
    const refusals = new RefusalsOf();
    await inParallel(mark, POOLS_AT_ONCE, (pool) =>
      refusals.attempt(() => this.#write(pool, [...pool.finalizers, IN_USE_FINALIZER])),
    );
    // One question without an answer does not delay the others.
    await inParallel(ask, POOLS_AT_ONCE, async (pool) => {
      if (await this.#isFree(pool)) await refusals.attempt(() => this.#end(pool));
    });
    return refusals.require(nextMs);
  }

  /** Returns the pools in deletion that still have allocations in the cache. */
  #heldPools(): ReadonlySet<string> {
    const held = new Set<string>();
    if (this.#leaving.size === 0) return held;
    for (const { spec } of this.#deps.caches.allocations.items.values()) {
      if (this.#leaving.has(spec.pool)) held.add(spec.pool);
      if (held.size === this.#leaving.size) break;
    }
    return held;
  }

  /** Reads the API server: the list is at least as new as the call. */
  async #isFree({ name }: ControlledPool): Promise<boolean> {
    const { api, leading: signal } = this.#deps;
    const query = { fieldSelector: `spec.pool=${name}`, limit: 1 };
    for await (const { items } of listPages(api, { path: collectionPath(IP_ALLOCATIONS), query, signal })) {
      if (items.length > 0) return false;
    }
    return true;
  }

  /** The cache may lag behind this process's own writes of the pool's status. */
  async #end(pool: ControlledPool): Promise<void> {
    const write = (last: ControlledPool): Promise<boolean> =>
      this.#write(
        last,
        last.finalizers.filter((name) => name !== IN_USE_FINALIZER),
      );
    if (!(await write(pool))) {
      const now = await this.#read(pool);
      if (now === undefined || !(await write(now))) return;
    }
    this.#deps.log.info({ pool: pool.name }, "The last address of a deleted pool is free; its finalizer is removed");
  }

  /** Returns the deleted pool from the API server; undefined if it is gone, or has no finalizer any more. */
  async #read({ name, uid }: ControlledPool): Promise<ControlledPool | undefined> {
    const { api, leading: signal } = this.#deps;
    const object = await callIfThere(api, { method: "GET", path: objectPath(IP_POOLS, { name }), signal });
    const found = object && decodeControlledPool(object);
    return found?.uid === uid && found.finalizers.includes(IN_USE_FINALIZER) ? found : undefined;
  }

  /** Returns false if the object has changed since; the watch reports the new version. */
  async #write(pool: ControlledPool, finalizers: readonly string[]): Promise<boolean> {
    const { api, leading: signal, poolWrites } = this.#deps;
    const { name, uid, resourceVersion } = pool;
    await poolWrites.awaitForStatus(signal);
    const [path, body] = [objectPath(IP_POOLS, { name }), { metadata: { finalizers } }];
    return (await patchIfSame(api, { path, uid, resourceVersion, body, signal })) !== undefined;
  }
}
