/**
 * The controller's watches: one reflector per collection, shared by all its listeners. The caches run whether or not
 * this process leads, so that a new leader has complete data at once.
 */

import type { VendorConf } from "../config/vendor-conf.ts";
import type { KubeApi, KubeObject } from "../kubernetes/kube-api.ts";
import { describeObject, keyOf } from "../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath, ENDPOINT_SLICES, NAMESPACES, NODES, SERVICES } from "../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions, type ReflectorStats } from "../kubernetes/reflector.ts";
import type { Log } from "../lib/log.ts";
import { ObjectBudget, type ObjectBudgetOptions } from "../lib/object-budget.ts";
import { COORDINATORS, IP_ALLOCATIONS, IP_POOLS, RESERVED_IPS, SUBNETS } from "../resources/collections.ts";
import { COORDINATOR_NAME, firstNicOf as firstNicIn } from "../resources/coordinator.ts";
import { decodeNamespace } from "../resources/namespace.ts";
import { decodeNode } from "../resources/node.ts";
import { decodeEpochRecord, EPOCH_MAP } from "../resources/registry-epoch.ts";
import { decodeVendorConfMap, settingsInForce } from "../resources/vendor-conf-map.ts";
import { openCachedDecoder } from "./cached-allocation.ts";
import { readControlPlane, readEndpoints, readService } from "./claimants.ts";
import {
  decodeControlledCoordinator,
  decodeControlledPool,
  decodeControlledReservation,
  decodeControlledSubnet,
  endingOf,
} from "./objects.ts";
import type { Caches } from "./types.ts";

/** Most heap for cached namespaces, workloads, pods, Services and network definitions: bytes. @limit */
const CONTROLLER_BUDGET_BYTES = 160 * 1024 * 1024;

interface CachesOptions {
  readonly api: KubeApi;
  /** Called for each namespace with its first object for which there is no room. */
  readonly onUnused?: ObjectBudgetOptions["onUnused"];
  readonly configNamespace: string;
  readonly log: Log;
  readonly random: () => number;
}

export interface OpenCaches extends Caches {
  /** Resolves when every cache has been complete once. Rejects with the signal's reason, and when the caches close. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Names of the collections whose first list is incomplete. */
  readonly unread: readonly string[];
  /** Sentences without a full stop, of all caches. */
  readonly problems: readonly string[];
  /** By the name of the collection. */
  readonly stats: Readonly<Record<string, ReflectorStats & { readonly objects: number }>>;
  close(): Promise<void>;
}

/** Starts to watch at once. */
export function openCaches({ api, onUnused, configNamespace, log, random }: CachesOptions): OpenCaches {
  const budget = new ObjectBudget({ totalBytes: CONTROLLER_BUDGET_BYTES, home: configNamespace, onUnused });
  const follow = <T>(
    name: string,
    decode: ReflectorOptions<T>["decode"],
    own: Pick<ReflectorOptions<T>, "path" | "fieldSelector" | "labelSelector" | "budgeted" | "keepsLast" | "ending">,
  ): Reflector<T> => new Reflector<T>({ api, log, random, keyOf, name, decode, ...own });
  const settings = collectionPath(CONFIG_MAPS, configNamespace);
  const caches = {
    pools: follow("IPPools", decodeControlledPool, { path: collectionPath(IP_POOLS) }),
    subnets: follow("Subnets", decodeControlledSubnet, { path: collectionPath(SUBNETS) }),
    reserved: follow("ReservedIPs", decodeControlledReservation, {
      path: collectionPath(RESERVED_IPS),
      ending: endingOf,
    }),
    allocations: follow("IPAllocations", openCachedDecoder(), { path: collectionPath(IP_ALLOCATIONS) }),
    coordinators: follow("Coordinators", decodeControlledCoordinator, { path: collectionPath(COORDINATORS) }),
    namespaces: follow("Namespaces", described(decodeNamespace), {
      path: collectionPath(NAMESPACES),
      budgeted: { budget },
    }),
    nodes: follow("Nodes", described(decodeNode), { path: collectionPath(NODES) }),
    services: follow("Services", readService, { path: collectionPath(SERVICES), budgeted: { budget } }),
    vendorConf: follow("vendor-conf", described(decodeVendorConfMap), {
      path: settings,
      fieldSelector: "metadata.name=vendor-conf",
      keepsLast: () => true,
    }),
    epoch: follow(EPOCH_MAP, described(decodeEpochRecord), {
      path: settings,
      fieldSelector: `metadata.name=${EPOCH_MAP}`,
    }),
  };
  const apiServer = [
    follow("the API server's EndpointSlices", readEndpoints, {
      path: collectionPath(ENDPOINT_SLICES, "default"),
      labelSelector: "kubernetes.io/service-name=kubernetes",
    }),
    follow("ConfigMap kube-system/kubeadm-config", readControlPlane, {
      path: collectionPath(CONFIG_MAPS, "kube-system"),
      fieldSelector: "metadata.name=kubeadm-config",
    }),
  ];
  const all: [string, AnyReflector][] = Object.entries(caches);
  const started: readonly AnyReflector[] = [...Object.values(caches), ...apiServer];
  for (const reflector of started) reflector.start();
  return {
    ...caches,
    apiServer,
    budget,
    configNamespace,
    synced: async (signal) => void (await Promise.all(all.map(([, reflector]) => reflector.synced(signal)))),
    get unread() {
      return all.flatMap(([name, { isSynced }]) => (isSynced ? [] : [name]));
    },
    get problems() {
      return [...started.flatMap(({ problems }) => problems), ...budget.problems];
    },
    get stats() {
      return Object.fromEntries(all.map(([name, { stats, items }]) => [name, { ...stats, objects: items.size }]));
    },
    close: async () => void (await Promise.all(started.map((reflector) => reflector.close()))),
  };
}

type AnyReflector = Pick<
  Reflector<unknown>,
  "items" | "isSynced" | "problems" | "stats" | "synced" | "start" | "close"
>;

function described<T>(decode: (object: KubeObject, source: string, before: T | undefined) => T) {
  return (object: KubeObject, before: T | undefined): T => decode(object, describeObject(object), before);
}

/** Returns the settings of the ConfigMap vendor-conf; without it those that were kept, else the defaults. */
export function settingsOf({
  vendorConf,
  epoch,
}: Pick<Caches, "vendorConf"> & Partial<Pick<Caches, "epoch">>): VendorConf {
  const [map] = vendorConf.items.values();
  return settingsInForce(map, [...(epoch?.items.values() ?? [])][0]?.conf);
}

/** Whether records of live pods may be missing. */
export function isEpochOpen({ epoch }: Pick<Caches, "epoch">): boolean {
  return [...epoch.items.values()].some((record) => record.settled !== record.epoch);
}

/** Whether an address without a record belongs to no pod (registry-epoch). */
export function hasEveryRecord({ epoch }: Pick<Caches, "epoch">): boolean {
  const [record] = epoch.items.values();
  return record !== undefined && record.epoch !== "" && !isEpochOpen({ epoch });
}

/** Returns the name of a pod's first NIC, whichever plugin serves it. */
export function firstNicOf({ coordinators }: Pick<Caches, "coordinators">): string {
  return firstNicIn(coordinators.items.get(COORDINATOR_NAME)?.value);
}
