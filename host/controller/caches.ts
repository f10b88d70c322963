/**
 * The controller's watches: one reflector per collection, shared by all its listeners. The caches run whether or not
 * this process leads, so that a new leader has complete data at once.
 */

import { isDeepStrictEqual } from "node:util";
import type { Labels } from "../config/label-selector.ts";
import { DEFAULT_VENDOR_CONF, type VendorConf } from "../config/vendor-conf.ts";
import type { KubeApi, KubeObject } from "../kubernetes/kube-api.ts";
import type { Change } from "../kubernetes/mirror.ts";
import { describeObject, keyOf } from "../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath, NAMESPACES, NODES } from "../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions, type ReflectorStats } from "../kubernetes/reflector.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Log } from "../lib/log.ts";
import { SharedTexts, SharedValues } from "../lib/shared-values.ts";
import { formatPrefix, type Prefix } from "../net/prefix.ts";
import { COORDINATORS, IP_ALLOCATIONS, IP_POOLS, RESERVED_IPS, SUBNETS } from "../resources/collections.ts";
import type { SubnetPoolSpec } from "../resources/fields/subnet-pool.ts";
import type { IpPoolSpec } from "../resources/ip-pool.ts";
import { decodeNamespace, type Namespace } from "../resources/namespace.ts";
import { decodeNode, type Node } from "../resources/node.ts";
import { decodeVendorConfMap, type VendorConfMap } from "../resources/vendor-conf-map.ts";
import { openCachedDecoder, type VersionedAllocation } from "./cached-allocation.ts";
import {
  type Condition,
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

interface CachesOptions {
  readonly api: KubeApi;
  /** Namespace of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  readonly log: Log;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

export interface OpenCaches extends Caches {
  /**
   * Resolves when every cache has been complete once. Rejects with the signal's reason, and when the caches are closed.
   */
  synced(signal?: AbortSignal): Promise<void>;
  /** Names of the collections whose first list is incomplete. */
  readonly unread: readonly string[];
  /** Sentences without a full stop, of all caches. */
  readonly problems: readonly string[];
  /** By the name of the collection. */
  readonly stats: Readonly<Record<string, ReflectorStats & { readonly objects: number }>>;
  close(): Promise<void>;
}

/** One collection with many listeners. A listener that throws does not keep the change from the others. */
class Followed<T> implements Cache<T> {
  readonly reflector: Reflector<T>;
  readonly #listeners: Listeners<Change<T>>;

  constructor(options: Omit<ReflectorOptions<T>, "onChange">) {
    const { log, name } = options;
    this.#listeners = new Listeners((error, { key }) => {
      log.error({ err: error, collection: name, key }, "Internal error while handling a change");
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

/** Starts to watch at once. */
export function openCaches({ api, configNamespace, log, random }: CachesOptions): OpenCaches {
  const follow = <T>(
    own: Pick<ReflectorOptions<T>, "name" | "path" | "fieldSelector" | "decode" | "versionIn">,
  ): Followed<T> => new Followed<T>({ api, log, random, keyOf, ...own });
  const caches = {
    pools: follow<ControlledPool>({
      name: "IPPools",
      path: collectionPath(IP_POOLS),
      decode: openPoolDecoder(),
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
    allocations: follow<VersionedAllocation>({
      name: "IPAllocations",
      path: collectionPath(IP_ALLOCATIONS),
      decode: openCachedDecoder(),
      versionIn: ({ version }) => version,
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

/** Returns the settings of the ConfigMap vendor-conf; the defaults if there is none. */
export function settingsOf({ vendorConf }: Pick<Caches, "vendorConf">): VendorConf {
  const [map] = vendorConf.items.values();
  return map?.conf ?? DEFAULT_VENDOR_CONF;
}

/** No part of the controller reads the labels of pools. */
const NO_LABELS: Labels = {};

const NOTHING: readonly never[] = [];

class SharedParts {
  readonly #texts = new SharedTexts();
  readonly #conditions = new SharedValues<Condition>();
  readonly #finalizers = new SharedValues<readonly string[]>();
  readonly #subnets = new SharedValues<Prefix>();

  /**
   * `before`: the pool of this name that was known before. Parts that both have in common are held once, too, for
   * they are kept along with the values derived from them.
   */
  pool({ value, conditions, finalizers, ...rest }: ControlledPool, before: ControlledPool | undefined): ControlledPool {
    return {
      ...rest,
      conditions: conditions.length === 0 ? NOTHING : conditions.map((each) => this.#condition(each)),
      finalizers: this.#finalizers.of(finalizers.join(), () => finalizers),
      value: value && { ...value, labels: NO_LABELS, spec: orEqual(before?.value?.spec, this.#spec(value.spec)) },
    };
  }

  #condition(condition: Condition): Condition {
    return this.#conditions.of(JSON.stringify(condition), () => condition);
  }

  #spec({ excluded, routes, namespaceName, nodeName, multusName, ...rest }: IpPoolSpec): IpPoolSpec {
    return {
      ...rest,
      subnet: this.#subnets.of(formatPrefix(rest.subnet), () => rest.subnet),
      generated: rest.generated && this.#generated(rest.generated),
      excluded: orNothing(excluded),
      routes: orNothing(routes),
      namespaceName: orNothing(namespaceName),
      nodeName: orNothing(nodeName),
      multusName: orNothing(multusName),
    };
  }

  #generated({ subnet, application, interface: ifName, reclaim, wanted, reason }: SubnetPoolSpec): SubnetPoolSpec {
    const { apiVersion, kind, namespace, name, uid } = application;
    return {
      subnet: this.#texts.of(subnet),
      application: {
        apiVersion: this.#texts.of(apiVersion),
        kind: this.#texts.of(kind),
        namespace: this.#texts.of(namespace),
        name,
        uid,
      },
      interface: this.#texts.of(ifName),
      reclaim,
      wanted,
      reason: this.#texts.of(reason),
    };
  }
}

function orEqual<T>(before: T | undefined, now: T): T {
  return before !== undefined && isDeepStrictEqual(before, now) ? before : now;
}

function orNothing<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NOTHING : list;
}

/** Returns a decoder with parts of its own that are shared. It throws only for what is not an API object at all. */
export function openPoolDecoder(): (object: KubeObject, before?: ControlledPool) => ControlledPool {
  const shared = new SharedParts();
  return (object, before) => shared.pool(decodeControlledPool(object), before);
}
