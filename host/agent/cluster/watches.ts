/** The collections that an agent in a cluster watches besides its own addresses: one reflector each. */
import * as z from "zod";
import { ConfigError } from "../../config/config-error.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { valueAfter } from "../../kubernetes/mirror.ts";
import { describeObject, keyOf } from "../../kubernetes/object-key.ts";
import { collectionPath } from "../../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions } from "../../kubernetes/reflector.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import type { ObjectBudget } from "../../lib/object-budget.ts";
import { formatMismatches } from "../../lib/schema.ts";
import { formatIp } from "../../net/ip.ts";
import { DEFINITIONS, joinDefinitions, REGISTRY_KINDS, readDefinition } from "../../registry/epoch/kubernetes-epoch.ts";
import { COORDINATOR_NAME, type Coordinator, decodeServedCoordinator } from "../../resources/coordinator.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { decodeIpPool, type IpPool } from "../../resources/ip-pool.ts";
import { decodeNamespace, type Namespace } from "../../resources/namespace.ts";
import { decodeNode, type Node } from "../../resources/node.ts";
import { decodePod, type Pod, reducePod } from "../../resources/pod.ts";
import { encodeSourceStatus } from "../../resources/pool-source.ts";
import { decodeEpochRecord, EPOCH_MAP, type EpochRecord } from "../../resources/registry-epoch.ts";
import { decodeReservedIp, type ReservedIp } from "../../resources/reserved-ip.ts";
import { decodeVendorConfMap, type VendorConfMap } from "../../resources/vendor-conf-map.ts";
import { type CachedDefinition, decodeCachedDefinition } from "./cached-definition.ts";

export interface WatchesOptions {
  readonly api: KubeApi;
  /** This node's name. */
  readonly node: string;
  /** Namespace of the ConfigMap vendor-conf. */
  readonly configNamespace: string;
  readonly log: Log;
  readonly random: () => number;
  /** Bounds the memory for pods, namespaces and network definitions. */
  readonly budget: ObjectBudget;
}

/** Invalid pools are kept, so that a pod that names one is told why it cannot be used. */
type WatchedPool = (
  | { readonly kind: "pool"; readonly pool: IpPool }
  | { readonly kind: "bad"; readonly name: string; readonly reason: string }
) & {
  /**
   * UID, generation, shortfall, routers and blocks: a change of it concerns every pod that needs the pool's addresses.
   * Undefined if unknown.
   */
  readonly revision: string | undefined;
  /** When an ADD was last refused for want of its addresses, as the API server has it. */
  readonly wanted: string | undefined;
};

/** Any of them, whatever it holds. */
export type AnyWatch = Pick<
  Reflector<unknown>,
  "items" | "isSynced" | "problems" | "unknown" | "stats" | "synced" | "start" | "close"
>;

export interface Watches {
  readonly pools: Reflector<WatchedPool>;
  readonly reserved: Reflector<ReservedIp>;
  readonly coordinators: Reflector<Coordinator>;
  readonly namespaces: Reflector<Namespace>;
  /** By `namespace/name`; none in a cluster without that kind. */
  readonly attachments: Reflector<CachedDefinition>;
  readonly vendorConf: Reflector<VendorConfMap>;
  readonly node: Reflector<Node>;
  /** The registry's epoch. */
  readonly epoch: Reflector<EpochRecord>;
  /** UIDs of the registry's definitions. */
  readonly allocationKind: Reflector<string>;
  readonly reservedKind: Reflector<string>;
  /** By `namespace/name`. */
  readonly pods: Reflector<Pod>;
}

export function openWatches(options: WatchesOptions): Watches {
  const { api, node, configNamespace, log, random, budget } = options;
  const follow = <T>(own: Omit<ReflectorOptions<T>, "api" | "keyOf" | "log" | "random">): Reflector<T> =>
    new Reflector<T>({ api, log, random, keyOf, ...own });
  const followKind = (name: string): Reflector<string> =>
    follow({
      name: `the definition ${name}`,
      path: collectionPath(DEFINITIONS),
      metadataOnly: true,
      fieldSelector: `metadata.name=${name}`,
      decode: readDefinition,
    });
  const [allocationKind, reservedKind] = REGISTRY_KINDS;
  return {
    pools: follow({
      name: "IPPools",
      path: `${API_PATH}/ippools`,
      decode: decodePool,
    }),
    reserved: follow({
      name: "ReservedIPs",
      path: `${API_PATH}/reservedips`,
      decode: (object) => decodeReservedIp(object, describeObject(object)),
      ending: ({ spec: { until } }) => (until === undefined ? undefined : { atMs: until, left: undefined }),
    }),
    coordinators: follow({
      name: "Coordinators",
      path: `${API_PATH}/coordinators`,
      decode: (object, before) => decodeServedCoordinator(object, describeObject(object), before),
      keepsLast: (name) => name === COORDINATOR_NAME,
    }),
    namespaces: follow({
      name: "Namespaces",
      path: "/api/v1/namespaces",
      decode: (object) => decodeNamespace(object, describeObject(object)),
      budgeted: { budget },
    }),
    attachments: follow({
      name: "NetworkAttachmentDefinitions",
      path: "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
      optional: true,
      decode: decodeCachedDefinition,
      budgeted: { budget },
    }),
    vendorConf: follow({
      name: "vendor-conf",
      path: `/api/v1/namespaces/${configNamespace}/configmaps`,
      fieldSelector: "metadata.name=vendor-conf",
      decode: (object, before) => decodeVendorConfMap(object, describeObject(object), before),
      keepsLast: () => true,
    }),
    node: follow({
      name: "this Node",
      path: "/api/v1/nodes",
      fieldSelector: `metadata.name=${node}`,
      decode: (object) => decodeNode(object, describeObject(object)),
    }),
    epoch: follow({
      name: EPOCH_MAP,
      path: `/api/v1/namespaces/${configNamespace}/configmaps`,
      fieldSelector: `metadata.name=${EPOCH_MAP}`,
      decode: (object) => decodeEpochRecord(object, describeObject(object)),
    }),
    allocationKind: followKind(allocationKind),
    reservedKind: followKind(reservedKind),
    pods: follow({
      name: "Pods of this node",
      path: "/api/v1/pods",
      fieldSelector: `spec.nodeName=${node}`,
      decode: decodeCachedPod,
      budgeted: { budget, reduce: reducePod },
    }),
  };
}

/** Calls the listener with pools for want of whose addresses an ADD somewhere was refused (cooling-visibility). */
export function followWanted({ pools }: Watches, listener: (pool: string) => void): void {
  pools.subscribe((change) => {
    const wanted = valueAfter(change)?.wanted;
    if (wanted !== undefined && wanted !== change.before?.wanted) listener(change.key);
  });
}

/** Calls the listener with the registry's epoch; undefined: there is no place for it. */
export function followEpoch({ epoch }: Watches, listener: (record: EpochRecord | undefined) => void): void {
  epoch.subscribe((change) => listener(valueAfter(change)));
  epoch.onSynced(() => {
    if (epoch.items.size === 0) listener(undefined);
  });
}

/** Calls the listener with the UIDs of the registry's definitions, once both are known; "" while one is away. */
export function followDefinitions({ allocationKind, reservedKind }: Watches, listener: (uids: string) => void): void {
  const kinds = [allocationKind, reservedKind];
  const tell = (): void => {
    if (kinds.every(({ isSynced }) => isSynced))
      listener(joinDefinitions(kinds.map(({ items }) => items.values().next().value ?? "")));
  };
  for (const kind of kinds) {
    kind.subscribe(tell);
    kind.onSynced(tell);
  }
}

/** No ADD comes for a pod that is finished or on the node's own network. */
function decodeCachedPod(object: KubeObject): Pod {
  const pod = decodePod(object, describeObject(object));
  return pod.isFinished || pod.hostNetwork ? reducePod(pod) : pod;
}

const poolMetadata = z.object({
  metadata: z.object({
    uid: z.string().optional().catch(undefined),
    generation: z.number().optional().catch(undefined),
  }),
  status: z
    .object({ wanted: z.string().optional().catch(undefined) })
    .optional()
    .catch(undefined),
});

function decodePool(object: KubeObject): WatchedPool {
  const { metadata, status } = poolMetadata.parse(object);
  const { uid = "", generation } = metadata;
  const observed = { revision: generation === undefined ? undefined : `${uid}/${generation}`, wanted: status?.wanted };
  try {
    const pool = decodeIpPool(object, describeObject(object));
    const blocks = pool.source && JSON.stringify(encodeSourceStatus({ ...pool.source, report: undefined }));
    const routers = (pool.spec.formerRouters ?? []).map(formatIp);
    const revision = observed.revision && [observed.revision, pool.shortfall, routers, blocks].join("/");
    return { kind: "pool", pool, ...observed, revision };
  } catch (error) {
    const reason = error instanceof ConfigError ? formatMismatches(error.mismatches) : messageOf(error);
    return { kind: "bad", name: keyOf(object), reason, ...observed };
  }
}
