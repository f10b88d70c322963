/**
 * Publishes which addresses of pools and Subnets Nodes, the API server and Services have, since agents watch none of
 * these. The list is in the status of the Coordinator `default`, which every agent watches; it is written only when it
 * changes, and is empty where pools and machines have different addresses.
 */
import * as z from "zod";
import { keyOf } from "../../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath, ENDPOINT_SLICES, SERVICES, statusPath } from "../../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions } from "../../kubernetes/reflector.ts";
import { COORDINATORS } from "../../resources/collections.ts";
import { MAX_OCCUPIED } from "../../resources/status.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { Controller, ControllerDeps, StartController } from "../types.ts";
import { type MachineAddresses, type OccupiedStatus, planOccupied } from "./plan-occupied.ts";
import { readControlPlane, readEndpoints, readService } from "./read-occupied.ts";

/** Shortest time between two updates of `status.occupied`: milliseconds. */
const OCCUPIED_REST_MS = 2_000;

/** The only Coordinator that counts. */
const NAME = "default";

const PATH = statusPath(COORDINATORS, { name: NAME });

export const startOccupied: StartController = (deps) => keepOccupied(deps);

function keepOccupied(deps: ControllerDeps): Controller {
  const { api, caches, log, random } = deps;
  const wake = (): void => loop.wake();
  const follow = (own: Pick<ReflectorOptions<readonly string[]>, "name" | "path" | "decode"> & Partial<Selectors>) => {
    const reflector = new Reflector({ api, log, random, keyOf, onChange: wake, onSynced: wake, ...own });
    reflector.start();
    return reflector;
  };
  const endpoints = follow({
    name: "the API server's EndpointSlices",
    path: collectionPath(ENDPOINT_SLICES, "default"),
    labelSelector: "kubernetes.io/service-name=kubernetes",
    decode: readEndpoints,
  });
  const services = follow({ name: "Services", path: collectionPath(SERVICES), decode: readService });
  const kubeadm = follow({
    name: "ConfigMap kube-system/kubeadm-config",
    path: collectionPath(CONFIG_MAPS, "kube-system"),
    fieldSelector: "metadata.name=kubeadm-config",
    decode: readControlPlane,
  });
  const sources = [endpoints, services, kubeadm];
  /** A source that has not been read says nothing: what was published stays. */
  const machines = (before: OccupiedStatus): MachineAddresses => ({
    nodes: [...caches.nodes.items.values()].flatMap(({ addresses }) => addresses),
    apiServer: valuesOf([endpoints, kubeadm]) ?? before.apiServer,
    services: valuesOf([services]) ?? before.services,
  });
  let leftOut = 0;
  const tell = async (): Promise<number | undefined> => {
    const coordinator = caches.coordinators.items.get(NAME);
    if (coordinator === undefined || coordinator.deleting) return undefined;
    const offering = [...caches.pools.items.values(), ...caches.subnets.items.values()];
    const ranges = offering.flatMap(({ value }) => value?.spec.ranges ?? []);
    const before = publishedOf(coordinator.status.occupied);
    const plan = planOccupied(machines(before), ranges);
    ({ leftOut } = plan);
    if (JSON.stringify(before) === JSON.stringify(plan.occupied)) return undefined;
    const { uid, resourceVersion } = coordinator;
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
  });
  const ends = [
    caches.pools.subscribe(wake),
    caches.subnets.subscribe(wake),
    caches.coordinators.subscribe(({ key }) => key === NAME && wake()),
    caches.nodes.subscribe((change) => {
      const now = change.kind === "set" ? change.value.addresses : [];
      if (now.join() !== (change.before?.addresses ?? []).join()) wake();
    }),
  ];
  return {
    get problems() {
      const tooMany = `${leftOut} addresses of pools that machines of the cluster have are not published to the agents, which get ${MAX_OCCUPIED} of each kind; take the machines' addresses out of the pools`;
      return [...sources.flatMap(({ problems }) => problems), ...(leftOut > 0 ? [tooMany] : []), ...loop.problems];
    },
    close: async () => {
      for (const end of ends) end();
      await loop.close();
      await Promise.all(sources.map((source) => source.close()));
    },
  };
}

/** Returns what the sources name; undefined while one of them has not been read. */
function valuesOf(sources: readonly Reflector<readonly string[]>[]): readonly string[] | undefined {
  return sources.every(({ isSynced }) => isSynced)
    ? sources.flatMap(({ items }) => [...items.values()].flat())
    : undefined;
}

const addresses = z.array(z.string()).catch([]);

const published = z
  .object({ nodes: addresses, apiServer: addresses, services: addresses })
  .catch({ nodes: [], apiServer: [], services: [] });

function publishedOf(occupied: unknown): OccupiedStatus {
  return published.parse(occupied);
}

type Selectors = Pick<ReflectorOptions<readonly string[]>, "fieldSelector" | "labelSelector">;
