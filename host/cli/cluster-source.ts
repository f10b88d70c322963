/**
 * The records of a whole cluster, from its API server. Reads what the kubeconfig's user may read, and writes nothing.
 */
import { openKubeClient } from "../kubernetes/client.ts";
import { loadCredentials } from "../kubernetes/credentials.ts";
import { isNotFound, type KubeApi, type KubeCall, type KubeObject } from "../kubernetes/kube-api.ts";
import { listPages } from "../kubernetes/list.ts";
import { collectionPath, type ObjectName, objectPath, PODS, type Resource } from "../kubernetes/paths.ts";
import { Reflector } from "../kubernetes/reflector.ts";
import { openLog } from "../lib/log.ts";
import { parseIp } from "../net/ip.ts";
import type { AddressRecord } from "../records/address-record.ts";
import type { AllocationRecord } from "../records/allocation-record.ts";
import type { PodRecord } from "../records/pod-record.ts";
import type { PoolRecord } from "../records/pool-record.ts";
import { COORDINATORS, IP_ALLOCATIONS, IP_POOL_USAGES, IP_POOLS, RESERVED_IPS } from "../resources/collections.ts";
import { allocationName } from "../resources/ip-allocation.ts";
import { decodePod } from "../resources/pod.ts";
import { allocationOf, compareRecords, placesOf, poolsOf, versionsOf } from "./cluster-records.ts";
import { BERTH_LABELS } from "./labels.ts";
import {
  type AllocationFilter,
  isOfPod,
  matchesFilter,
  type PodName,
  type Source,
  type VersionRecord,
} from "./source.ts";

/** Time for which `berthctl` tries to reach the API server: milliseconds. */
export const CLUSTER_PATIENCE_MS = 10_000;

/** Time for which `--watch` gathers changes before it prints them: milliseconds. */
const WATCH_GATHER_MS = 250;

interface ClusterSourceOptions {
  /** As kubectl merges them; undefined in a pod, for its service account. */
  readonly kubeconfig: readonly string[] | undefined;
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
    const objects = await this.#objects(
      IP_ALLOCATIONS,
      node === undefined ? {} : { fieldSelector: `spec.node=${node}` },
    );
    const records = objects.map(allocationOf).filter((record) => matchesFilter(record, filter));
    return records.sort(compareRecords);
  }

  async address(address: string): Promise<AddressRecord> {
    const ip = parseIp(address);
    if (ip === undefined) return { address, places: [], allocations: [] };
    const [pools, reserved, coordinators] = await Promise.all([
      this.#objects(IP_POOLS),
      this.#objects(RESERVED_IPS),
      this.#objects(COORDINATORS),
    ]);
    const places = placesOf(ip, { pools, reserved, coordinators });
    const spaces = new Set(["", ...places.map(({ addressSpace }) => addressSpace)]);
    const objects = await Promise.all(
      [...spaces].map((space) => this.#find(IP_ALLOCATIONS, { name: allocationName(ip, space) })),
    );
    const allocations = objects.filter((object) => object !== undefined).map(allocationOf);
    return { address, places, allocations };
  }

  async pod({ namespace, name }: PodName): Promise<PodRecord> {
    const object = await this.#find(PODS, { namespace, name });
    const {
      uid = "",
      nodeName = "",
      phase = "Unknown",
    } = object === undefined ? {} : decodePod(object, `pod "${namespace}/${name}"`);
    // A retained address has no pod to be found by.
    const all = (await this.#objects(IP_ALLOCATIONS)).map(allocationOf).sort(compareRecords);
    const allocations = all.filter((record) => isOfPod(record, { namespace, name }));
    const pod = object === undefined ? undefined : { uid, node: nodeName, phase };
    return { namespace, name, pod, isMissing: object === undefined, allocations };
  }

  /** Berth's programs by the tags of their images. */
  async versions(): Promise<readonly VersionRecord[]> {
    const server = await this.api.call({ method: "GET", path: "/version", patienceMs: CLUSTER_PATIENCE_MS });
    const pods = await this.#objects(PODS, { labelSelector: BERTH_LABELS });
    return [{ component: "API server", version: String(server.gitVersion) }, ...versionsOf(pods)];
  }

  async *changes(kind: "pools" | "allocations", signal: AbortSignal): AsyncGenerator<void> {
    const resources = kind === "pools" ? [IP_POOLS, IP_POOL_USAGES] : [IP_ALLOCATIONS];
    let changed = Promise.withResolvers<void>();
    const onChange = () => changed.resolve();
    for (const resource of resources) this.#followed.set(resource, this.#reflect(resource, onChange));
    const reflectors = [...this.#followed.values()];
    const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
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

  /** Returns undefined if there is no such object. */
  async #find(resource: Resource, name: ObjectName): Promise<KubeObject | undefined> {
    try {
      return await this.api.call({ method: "GET", path: objectPath(resource, name), patienceMs: CLUSTER_PATIENCE_MS });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #objects(resource: Resource, query: KubeCall["query"] = {}): Promise<readonly KubeObject[]> {
    const followed = this.#followed.get(resource);
    if (followed !== undefined) return [...followed.items.values()];
    const objects: KubeObject[] = [];
    const list = { path: collectionPath(resource), query, patienceMs: CLUSTER_PATIENCE_MS };
    for await (const { items } of listPages(this.api, list)) objects.push(...items);
    return objects;
  }
}
