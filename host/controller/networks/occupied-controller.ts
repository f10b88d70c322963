/**
 * Publishes which addresses of pools and Subnets Nodes, the API server and Services have, since agents watch none of
 * these. The list is in the status of the Coordinator `default`, which every agent watches; it is written only when it
 * changes, and is empty where pools and machines have different addresses.
 */
import * as z from "zod";
import { parseYaml } from "../../config/yaml.ts";
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import { CONFIG_MAPS, collectionPath, ENDPOINT_SLICES, statusPath } from "../../kubernetes/paths.ts";
import { RateLimit } from "../../lib/rate-limit.ts";
import { COORDINATORS } from "../../resources/collections.ts";
import { COORDINATOR_NAME } from "../../resources/coordinator.ts";
import { claimantsOf, planOccupied } from "../claimants.ts";
import { followObjects } from "../follow-objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { StartController } from "../types.ts";

/** Shortest time between two updates of `status.occupied`: milliseconds. */
const OCCUPIED_REST_MS = 2_000;

/** All agents read the list, and tenants can have load balancers made and taken away: it changes so often at most. */
const OCCUPIED_WRITES = { burst: 10, perSecond: 1 / 30, maxKeys: 1 };

const PATH = statusPath(COORDINATORS, { name: COORDINATOR_NAME });

export const startOccupied: StartController = (deps) => {
  const { api, caches, log } = deps;
  const wake = (): void => loop.wake();
  const endpoints = followObjects(deps, wake, {
    name: "the API server's EndpointSlices",
    path: collectionPath(ENDPOINT_SLICES, "default"),
    labelSelector: "kubernetes.io/service-name=kubernetes",
    decode: readEndpoints,
  });
  const kubeadm = followObjects(deps, wake, {
    name: "ConfigMap kube-system/kubeadm-config",
    path: collectionPath(CONFIG_MAPS, "kube-system"),
    fieldSelector: "metadata.name=kubeadm-config",
    decode: readControlPlane,
  });
  const sources = [endpoints, kubeadm];
  const rate = new RateLimit(OCCUPIED_WRITES, deps.clock.nowMs);
  let leftOut: readonly string[] = [];
  const tell = async (): Promise<number | undefined> => {
    const coordinator = caches.coordinators.items.get(COORDINATOR_NAME);
    if (coordinator === undefined || coordinator.deleting) return undefined;
    const offering = [...caches.pools.items.values(), ...caches.subnets.items.values()];
    const ranges = offering.flatMap(({ value }) => value?.spec.ranges ?? []);
    const { uid, resourceVersion, status } = coordinator;
    const before = published.parse(status.occupied);
    // A source that has not been read says nothing: what was published stays.
    const areRead = sources.every(({ isSynced }) => isSynced);
    const apiServer = areRead ? sources.flatMap(({ items }) => [...items.values()].flat()) : before.apiServer;
    const plan = planOccupied({ claimants: claimantsOf(caches), apiServer }, ranges);
    leftOut = plan.problems;
    if (status.occupied !== undefined && JSON.stringify(before) === JSON.stringify(plan.occupied)) return undefined;
    if (!rate.take("")) return OCCUPIED_REST_MS;
    const body = { status: { occupied: plan.occupied } };
    if ((await patchIfSame(api, { path: PATH, uid, resourceVersion, body, signal: deps.leading })) === undefined)
      return OCCUPIED_REST_MS;
    log.info({ occupied: plan.occupied }, "The addresses of pools that machines of the cluster have are published");
    return undefined;
  };
  const loop = startReconciling(deps, {
    failure: "Writing the addresses of pools that machines of the cluster have failed",
    work: tell,
    restMs: () => OCCUPIED_REST_MS,
    follow: () => [
      caches.pools.subscribe(wake),
      caches.subnets.subscribe(wake),
      caches.coordinators.subscribe(({ key }) => key === COORDINATOR_NAME && wake()),
      caches.services.subscribe(wake),
      caches.nodes.subscribe((change) => {
        const now = change.kind === "set" ? change.value.addresses : [];
        if (now.join() !== (change.before?.addresses ?? []).join()) wake();
      }),
    ],
  });
  return {
    get problems() {
      return [...sources.flatMap(({ problems }) => problems), ...leftOut, ...loop.problems];
    },
    close: async () => {
      await loop.close();
      await Promise.all(sources.map((source) => source.close()));
    },
  };
};

const addresses = z.array(z.string()).catch([]);

const published = z
  .object({ nodes: addresses, apiServer: addresses, services: addresses })
  .catch({ nodes: [], apiServer: [], services: [] });

const slice = z.object({ endpoints: z.array(z.object({ addresses })).catch([]) });

/** Reads one of the API server's own EndpointSlices: the machines that run it. */
export function readEndpoints(object: KubeObject): readonly string[] {
  return slice.parse(object).endpoints.flatMap(({ addresses }) => addresses);
}

const KEY = "ClusterConfiguration";

const kubeadmMap = z.object({ data: z.object({ [KEY]: z.string() }) });

const configuration = z.object({ controlPlaneEndpoint: z.string() });

/**
 * Reads the ConfigMap kubeadm-config: the host of `controlPlaneEndpoint`, which is a virtual address of the API
 * server or a name.
 */
export function readControlPlane(object: KubeObject): readonly string[] {
  const text = kubeadmMap.safeParse(object).data?.data[KEY];
  if (text === undefined) return [];
  const endpoint = configuration.safeParse(parseYaml(text, KEY)[0]?.value).data?.controlPlaneEndpoint;
  const host = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::\d+)?$/.exec(endpoint ?? "")?.groups;
  return [host?.six ?? host?.four ?? ""];
}
