/** The records of a whole cluster, from its API server. Reads what the kubeconfig's user may read, and writes nothing. */
import { openKubeClient } from "../kubernetes/client.ts";
import { loadCredentials } from "../kubernetes/credentials.ts";
import type { KubeApi, KubeObject } from "../kubernetes/kube-api.ts";
import { listPages } from "../kubernetes/list.ts";
import { collectionPath, type Resource } from "../kubernetes/paths.ts";
import { Reflector } from "../kubernetes/reflector.ts";
import { openLog } from "../lib/log.ts";
import type { AllocationRecord } from "../records/allocation-record.ts";
import type { PoolRecord } from "../records/pool-record.ts";
import { IP_ALLOCATIONS, IP_POOL_USAGES, IP_POOLS } from "../resources/collections.ts";
import { allocationOf, compareRecords, poolsOf } from "./cluster-records.ts";
import { type AllocationFilter, matchesFilter, type Source } from "./source.ts";

/** How long `berthctl` tries to reach the API server: milliseconds. @limit */
export const CLUSTER_PATIENCE_MS = 10_000;

/** How long `--watch` gathers changes before it prints them: milliseconds. @limit */
export const WATCH_GATHER_MS = 250;

interface ClusterSourceOptions {
  /** As kubectl merges them; undefined in a pod, for its service account. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly userAgent: string;
}

/** Rejects with ConfigError for a kubeconfig that cannot be used. */
export async function openClusterSource({
  kubeconfig,
  context,
  userAgent,
}: ClusterSourceOptions): Promise<ClusterSource> {
  const credentials = await loadCredentials({ kubeconfig, context });
  return new ClusterSource(openKubeClient({ credentials, userAgent, random: Math.random }));
}

export class ClusterSource implements Source {
  readonly api: KubeApi;
  /** While changes are followed: the objects of a collection by name. */
  readonly #followed = new Map<Resource, Reflector<KubeObject>>();

  constructor(api: KubeApi) {
    this.api = api;
  }

  async scope(): Promise<undefined> {
    return undefined;
  }

  async pools(): Promise<readonly PoolRecord[]> {
    const [pools, usages] = await Promise.all([this.#objects(IP_POOLS), this.#objects(IP_POOL_USAGES)]);
    return poolsOf(pools, usages);
  }

  async allocations(filter: AllocationFilter): Promise<readonly AllocationRecord[]> {
    const { node } = filter;
    const fieldSelector = node === undefined ? undefined : `spec.node=${node}`;
    const objects = await this.#objects(IP_ALLOCATIONS, fieldSelector);
    const records = objects.map(allocationOf).filter((record) => matchesFilter(record, filter));
    return records.sort(compareRecords);
  }

  async *changes(kind: "pools" | "allocations", signal: AbortSignal): AsyncGenerator<void> {
    const resources = kind === "pools" ? [IP_POOLS, IP_POOL_USAGES] : [IP_ALLOCATIONS];
    let wake = () => {};
    let changed = Promise.withResolvers<void>();
    const onChange = () => changed.resolve();
    for (const resource of resources) this.#followed.set(resource, this.#reflect(resource, onChange));
    const reflectors = [...this.#followed.values()];
    const ended = new Promise<void>((resolve) => {
      wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    try {
      for (const reflector of reflectors) reflector.start();
      await Promise.race([Promise.all(reflectors.map((reflector) => this.#synced(reflector))), ended]);
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        yield;
        await Promise.race([changed.promise, ended]);
        await Promise.race([new Promise((resolve) => setTimeout(resolve, WATCH_GATHER_MS)), ended]);
      }
    } finally {
      wake();
      await Promise.all(reflectors.map((reflector) => reflector.close()));
      this.#followed.clear();
    }
  }

  close(): Promise<void> {
    return this.api.close();
  }

  /** Rejects with the reason if the first list does not come in time. */
  async #synced(reflector: Reflector<KubeObject>): Promise<void> {
    try {
      await reflector.synced(AbortSignal.timeout(CLUSTER_PATIENCE_MS));
    } catch (error) {
      throw reflector.problems[0] === undefined ? error : new Error(reflector.problems[0]);
    }
  }

  #reflect(resource: Resource, onChange: () => void): Reflector<KubeObject> {
    return new Reflector<KubeObject>({
      api: this.api,
      name: resource.plural,
      path: collectionPath(resource),
      decode: (object) => object,
      keyOf: ({ metadata }) => String((metadata as { name?: unknown }).name),
      onChange,
      log: openLog("berthctl", "silent"),
      random: Math.random,
    });
  }

  async #objects(resource: Resource, fieldSelector?: string): Promise<readonly KubeObject[]> {
    const followed = this.#followed.get(resource);
    if (followed !== undefined) return [...followed.items.values()];
    const objects: KubeObject[] = [];
    const list = { path: collectionPath(resource), query: { fieldSelector }, patienceMs: CLUSTER_PATIENCE_MS };
    for await (const { items } of listPages(this.api, list)) objects.push(...items);
    return objects;
  }
}
