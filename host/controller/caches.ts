/**
 * What the controller follows: one reflector per collection, each for as many listeners as there are.
 * Opened once per process by open-controller.ts, whether it leads or not: who takes over then knows everything already.
 * Effects: lists and watches once they are started.
 */

import { DEFAULT_VENDOR_CONF, type VendorConf } from "../config/vendor-conf.ts";
import type { KubeApi, KubeObject } from "../kubernetes/kube-api.ts";
import { describeObject, keyOf } from "../kubernetes/object-key.ts";
import {
  CONFIG_MAPS,
  COORDINATORS,
  collectionPath,
  IP_ALLOCATIONS,
  IP_POOLS,
  NAMESPACES,
  NODES,
  RESERVED_IPS,
  SUBNETS,
} from "../kubernetes/paths.ts";
import { type Change, Reflector, type ReflectorOptions, type ReflectorStats } from "../kubernetes/reflector.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Log } from "../lib/log.ts";
import {
  decodeIpAllocation,
  type Holder,
  type IpAllocation,
  type IpAllocationSpec,
} from "../resources/ip-allocation.ts";
import { decodeNamespace, type Namespace } from "../resources/namespace.ts";
import { decodeNode, type Node } from "../resources/node.ts";
import { decodeVendorConfMap, type VendorConfMap } from "../resources/vendor-conf-map.ts";
import {
  type ControlledCoordinator,
  type ControlledPool,
  type ControlledReservation,
  type ControlledSubnet,
  decodeControlledCoordinator,
  decodeControlledPool,
  decodeControlledReservation,
  decodeControlledSubnet,
} from "./objects.ts";
import type { Cache, Caches } from "./types.ts";

export interface CachesOptions {
  readonly api: KubeApi;
  /** Of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface OpenCaches extends Caches {
  /** Resolves when every map was complete once. Rejects with the signal's reason, and when the caches are closed. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Names of the collections whose first list is not complete. */
  readonly unread: readonly string[];
  /** Sentences without their end, of all of them. */
  readonly problems: readonly string[];
  /** By the collection's name. */
  readonly stats: Readonly<Record<string, ReflectorStats & { readonly objects: number }>>;
  close(): Promise<void>;
}

/** One collection for many. The reflector tells one after the other; one that throws keeps the others from nothing. */
class Followed<T> implements Cache<T> {
  readonly reflector: Reflector<T>;
  readonly #listeners: Listeners<Change<T>>;

  constructor(options: Omit<ReflectorOptions<T>, "onChange">) {
    const { log, name } = options;
    this.#listeners = new Listeners((error, { key }) => {
      log.error({ err: error, collection: name, key }, "A change was not taken in");
    });
    this.reflector = new Reflector<T>({ ...options, onChange: (change) => this.#listeners.tell(change) });
  }

  get items(): ReadonlyMap<string, T> {
    return this.reflector.items;
  }

  get problems(): readonly string[] {
    return this.reflector.problems;
  }

  subscribe(listener: (change: Change<T>) => void): () => void {
    return this.#listeners.add(listener);
  }
}

/** Starts to follow at once. */
export function openCaches({ api, configNamespace, log, random }: CachesOptions): OpenCaches {
  const follow = <T>(own: Pick<ReflectorOptions<T>, "name" | "path" | "fieldSelector" | "decode">): Followed<T> =>
    new Followed<T>({ api, log, random, keyOf, ...own });
  const caches = {
    pools: follow<ControlledPool>({
      name: "IPPools",
      path: collectionPath(IP_POOLS),
      decode: decodeControlledPool,
    }),
    subnets: follow<ControlledSubnet>({
      name: "Subnets",
      path: collectionPath(SUBNETS),
      decode: decodeControlledSubnet,
    }),
    reserved: follow<ControlledReservation>({
      name: "ReservedIPs",
      path: collectionPath(RESERVED_IPS),
      decode: decodeControlledReservation,
    }),
    allocations: follow<IpAllocation>({
      name: "IPAllocations",
      path: collectionPath(IP_ALLOCATIONS),
      decode: openLeanDecoder(),
    }),
    coordinators: follow<ControlledCoordinator>({
      name: "Coordinators",
      path: collectionPath(COORDINATORS),
      decode: decodeControlledCoordinator,
    }),
    namespaces: follow<Namespace>({
      name: "Namespaces",
      path: collectionPath(NAMESPACES),
      decode: described(decodeNamespace),
    }),
    nodes: follow<Node>({
      name: "Nodes",
      path: collectionPath(NODES),
      decode: described(decodeNode),
    }),
    vendorConf: follow<VendorConfMap>({
      name: "vendor-conf",
      path: collectionPath(CONFIG_MAPS, configNamespace),
      fieldSelector: "metadata.name=vendor-conf",
      decode: described(decodeVendorConfMap),
    }),
  };
  const all: readonly (readonly [string, AnyReflector])[] = Object.entries(caches).map(
    ([name, { reflector }]) => [name, reflector] as const,
  );
  for (const [, reflector] of all) reflector.start();
  return {
    ...caches,
    synced: async (signal) => void (await Promise.all(all.map(([, reflector]) => reflector.synced(signal)))),
    get unread() {
      return all.flatMap(([name, { isSynced }]) => (isSynced ? [] : [name]));
    },
    get problems() {
      return all.flatMap(([, { problems }]) => problems);
    },
    get stats() {
      return Object.fromEntries(all.map(([name, { stats, items }]) => [name, { ...stats, objects: items.size }]));
    },
    close: async () => void (await Promise.all(all.map(([, reflector]) => reflector.close()))),
  };
}

type AnyReflector = Pick<
  Reflector<unknown>,
  "items" | "isSynced" | "problems" | "stats" | "synced" | "start" | "close"
>;

function described<T>(decode: (object: KubeObject, source: string) => T): (object: KubeObject) => T {
  return (object) => decode(object, describeObject(object));
}

/** Most names of pools, nodes and namespaces that are kept once for all allocations that have them. @limit */
export const MAX_SHARED_TEXTS = 65_536;

/** A decoder with a memory of its own. Throws ConfigError. */
export function openLeanDecoder(): (object: KubeObject) => IpAllocation {
  const texts = new Map<string, string>();
  const share = (text: string): string => {
    const known = texts.get(text);
    if (known !== undefined) return known;
    // A cluster that has had so many names begins anew: what is in use comes back with the next object that has it.
    if (texts.size >= MAX_SHARED_TEXTS) texts.clear();
    texts.set(text, text);
    return text;
  };
  return (object) => {
    const { kind, name, uid, resourceVersion, deleting, spec } = decodeIpAllocation(object, "API server");
    return { kind, name, uid, resourceVersion, deleting, spec: leanSpec(spec, share) };
  };
}

function leanSpec(spec: IpAllocationSpec, share: (text: string) => string): IpAllocationSpec {
  const { ip, addressSpace, prefixLength, pool, state, node, holders, workload, quarantine, since } = spec;
  return {
    ip,
    addressSpace: share(addressSpace),
    prefixLength,
    pool: share(pool),
    state,
    node: share(node),
    holders: holders.map((holder) => leanHolder(holder, share)),
    workload,
    quarantine,
    since,
  };
}

function leanHolder({ namespace, pod, podUid, ifName, node }: Holder, share: (text: string) => string): Holder {
  return { namespace: share(namespace), pod, podUid, ifName: share(ifName), node: share(node) };
}

/** Those of the ConfigMap vendor-conf; the defaults when there is none. */
export function settingsOf({ vendorConf }: Pick<Caches, "vendorConf">): VendorConf {
  const [map] = vendorConf.items.values();
  return map?.conf ?? DEFAULT_VENDOR_CONF;
}
