/**
 * Publishes the namespaces that have reached `maxAddressesPerNamespace`, since agents see only the addresses of their
 * own nodes. The list is in the status of the Coordinator `default`, which every agent watches; it is written when a
 * namespace joins or leaves it. An agent may write any pod into its addresses, so the pods of a namespace that seems
 * full are listed: only those that exist count.
 */

import { METADATA_LIST } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { collectionPath, PODS, statusPath } from "../../kubernetes/paths.ts";
import { COORDINATORS } from "../../resources/collections.ts";
import { COORDINATOR_NAME, fullNamespacesOf } from "../../resources/coordinator.ts";
import { MAX_FULL_NAMESPACES } from "../../resources/status.ts";
import { type CachedAllocation, countedFor } from "../cached-allocation.ts";
import { settingsOf } from "../caches.ts";
import { NamespaceShares } from "../namespace-shares.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";

/**
 * Shortest time between two updates of `status.fullNamespaces`: milliseconds. A namespace may exceed the limit for this
 * time and the delay of two watches.
 */
const SHARES_REST_MS = 2_000;

/** Interval at which the pods of a namespace that seems full are listed: milliseconds. */
const PODS_INTERVAL_MS = 60_000;

const PATH = statusPath(COORDINATORS, { name: COORDINATOR_NAME });

export const startShares: StartController = (deps) => {
  const { caches } = deps;
  const shares = new NamespaceShares(caches.allocations.items.values());
  const absent = new AbsentHolders(deps);
  return startReconciling(deps, {
    failure: "Writing the namespaces that have reached their limit of addresses failed",
    work: () => tell(deps, shares, absent),
    restMs: () => SHARES_REST_MS,
    follow: (wake) => [
      caches.allocations.subscribe((change) => {
        shares.apply(change);
        absent.apply(change);
        wake();
      }),
      caches.vendorConf.subscribe(wake),
      caches.coordinators.subscribe(({ key }) => key === COORDINATOR_NAME && wake()),
    ],
  });
};

/** Returns the time until a retry: milliseconds; undefined unless another writer was faster. */
async function tell(
  { api, caches, leading, log }: ControllerDeps,
  shares: NamespaceShares,
  absent: AbsentHolders,
): Promise<number | undefined> {
  const coordinator = caches.coordinators.items.get(COORDINATOR_NAME);
  if (coordinator === undefined || coordinator.deleting) return undefined;
  const { maxAddressesPerNamespace: limit } = settingsOf(caches);
  const seeming = limit === 0 ? [] : shares.full(limit);
  await absent.update(seeming.map(({ name }) => name));
  const counted = seeming.map(({ name, addresses }) => ({ name, addresses: addresses - absent.count(name) }));
  const fullNamespaces = counted.filter(({ addresses }) => addresses >= limit).slice(0, MAX_FULL_NAMESPACES);
  const told = [...fullNamespacesOf(coordinator.status).keys()].join();
  const now = fullNamespaces.map(({ name }) => name).join();
  const nextMs = seeming.length === 0 ? undefined : PODS_INTERVAL_MS;
  if (told === now) return nextMs;
  const { uid, resourceVersion } = coordinator;
  const body = { status: { fullNamespaces } };
  if ((await patchIfSame(api, { path: PATH, uid, resourceVersion, body, signal: leading })) === undefined)
    return SHARES_REST_MS;
  log.info({ fullNamespaces, limit }, "The namespaces at their limit of addresses have changed");
  return nextMs;
}

/** Counts the addresses of a namespace that name absent pods, or exceed the number that one pod may have. */
class AbsentHolders {
  readonly #deps: Pick<ControllerDeps, "api" | "caches" | "clock" | "leading">;
  /** By namespace, and by pod, as last listed. */
  readonly #counts = new Map<string, { readonly absent: Map<string, number>; readonly dueMs: number }>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  count(namespace: string): number {
    const counts = this.#counts.get(namespace)?.absent.values() ?? [];
    return Iterator.from(counts).reduce((sum, count) => sum + count, 0);
  }

  /** Stops counting addresses that such a pod has lost: its namespace would get as many beyond the limit. */
  apply(change: Change<CachedAllocation>): void {
    const { pod = "", namespace = "" } = (change.before && countedFor(change.before)) ?? {};
    const now = change.kind === "set" ? countedFor(change.value)?.pod : undefined;
    const counts = this.#counts.get(namespace)?.absent;
    const count = counts?.get(pod) ?? 0;
    if (now !== pod && count > 0) counts?.set(pod, count - 1);
  }

  /** Drops all other namespaces. Lists the pods of those that are due. */
  async update(namespaces: readonly string[]): Promise<void> {
    const { clock } = this.#deps;
    for (const name of this.#counts.keys()) if (!namespaces.includes(name)) this.#counts.delete(name);
    for (const name of namespaces) {
      if (clock.nowMs() < (this.#counts.get(name)?.dueMs ?? 0)) continue;
      const absent = this.#countAbsent(name, await this.#listPods(name));
      this.#counts.set(name, { absent, dueMs: clock.nowMs() + PODS_INTERVAL_MS });
    }
  }

  async #listPods(namespace: string): Promise<ReadonlySet<unknown>> {
    const { api, leading: signal } = this.#deps;
    const names = new Set<unknown>();
    const call = { path: collectionPath(PODS, namespace), accept: METADATA_LIST, signal };
    for await (const { items } of listPages(api, call))
      for (const { metadata } of items) names.add((metadata as { readonly name?: unknown } | undefined)?.name);
    return names;
  }

  #countAbsent(namespace: string, pods: ReadonlySet<unknown>): Map<string, number> {
    const { caches } = this.#deps;
    const most = settingsOf(caches).maxAddressesPerPod || Number.POSITIVE_INFINITY;
    const ofPods = new Map<string, number>();
    for (const each of caches.allocations.items.values()) {
      const { pod, namespace: its } = countedFor(each) ?? {};
      if (pod !== undefined && its === namespace) ofPods.set(pod, (ofPods.get(pod) ?? 0) + 1);
    }
    for (const [pod, count] of ofPods) if (pods.has(pod)) ofPods.set(pod, Math.max(0, count - most));
    return ofPods;
  }
}
