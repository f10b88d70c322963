/** The cluster as source and as target of a conversion: lists of a peer's objects, and server-side apply. */

import type { ClusterSource } from "../../host/cli/cluster-source.ts";
import { CLUSTER_PATIENCE_MS, listObjects } from "../../host/cli/read-objects.ts";
import { ApiError, callIfThere, isNotFound, type KubeApi, type KubeObject } from "../../host/kubernetes/kube-api.ts";
import {
  CONFIG_MAPS,
  NAMESPACES,
  NETWORK_DEFINITIONS,
  objectPath,
  PODS,
  type Resource,
} from "../../host/kubernetes/paths.ts";
import { orElse } from "../../host/lib/try-or.ts";
import { COORDINATORS, IP_ALLOCATIONS, IP_POOLS, RESERVED_IPS, SUBNETS } from "../../host/resources/collections.ts";
import { decodeIpAllocation } from "../../host/resources/ip-allocation.ts";
import { decodeIpPool } from "../../host/resources/ip-pool.ts";
import { CALICO_KINDS } from "./calico.ts";
import {
  addressKey,
  CONVERTED_LABEL,
  type ConversionPlan,
  identityOf,
  type Manifest,
  type Peer,
  patchName,
  type Target,
  type WorkloadPatch,
} from "./conversion-plan.ts";
import type { Findings } from "./findings.ts";
import { type Input, readServed } from "./input.ts";
import { NETWORK_DEFINITION_KIND } from "./networks.ts";
import { SPIDERPOOL_KINDS } from "./spiderpool.ts";
import { WHEREABOUTS_KINDS } from "./whereabouts.ts";

/** Field manager of the objects and patches. */
const MANAGER = "berthctl-convert";

const PEER_KINDS: Readonly<Record<Peer, readonly Resource[]>> = {
  spiderpool: SPIDERPOOL_KINDS,
  whereabouts: WHEREABOUTS_KINDS,
  "host-local": [],
  calico: CALICO_KINDS,
};

/** Field manager of Berth's controller, which creates the Coordinator `default` where there is none. */
const SUPPLIER = "berth-controller";

/** Kinds with pod templates. */
const WORKLOADS: readonly Resource[] = [
  { apiVersion: "apps/v1", plural: "deployments" },
  { apiVersion: "apps/v1", plural: "statefulsets" },
  { apiVersion: "apps/v1", plural: "daemonsets" },
  { apiVersion: "apps/v1", plural: "replicasets" },
  { apiVersion: "batch/v1", plural: "cronjobs" },
  { apiVersion: "batch/v1", plural: "jobs" },
  { apiVersion: "kubevirt.io/v1", plural: "virtualmachines" },
];

/** Reads all objects that concern a peer. */
export async function listInput({ api }: ClusterSource, peer: Peer): Promise<KubeObject[]> {
  const kinds = [...PEER_KINDS[peer], NETWORK_DEFINITIONS, NAMESPACES, PODS, ...WORKLOADS];
  const lists = await Promise.all(kinds.map((kind) => list(api, kind)));
  const settings =
    peer === "spiderpool" ? await list(api, CONFIG_MAPS, { fieldSelector: "metadata.name=spiderpool-conf" }) : [];
  return [...lists.flat(), ...settings];
}

export function inputOf(objects: readonly KubeObject[], findings: Findings): Input {
  return { objects: readServed(objects, findings), configs: [], addresses: [] };
}

/** Reads Berth's objects in the cluster. */
export async function readTarget({ api }: ClusterSource): Promise<Target> {
  const [pools, allocations] = await Promise.all([list(api, IP_POOLS), list(api, IP_ALLOCATIONS)]);
  const allocated = allocations.flatMap((object) => {
    const { spec } = decodeIpAllocation(object, "IPAllocation");
    const [holder] = spec.holders;
    return [
      [
        addressKey(spec.ip, spec.addressSpace),
        holder === undefined ? "" : `${holder.namespace}/${holder.pod}`,
      ] as const,
    ];
  });
  return {
    pools: pools.map((pool) => decodeIpPool(pool, "IPPool")),
    allocated: new Map(allocated.filter(([, pod]) => pod !== "")),
  };
}

/** Returns no objects of a kind that is not installed. */
function list(api: KubeApi, resource: Resource, query: Readonly<Record<string, string>> = {}): Promise<KubeObject[]> {
  return listObjects(api, { resource, query }).catch(orElse(isNotFound, []));
}

const RESOURCES: Readonly<Record<string, Resource>> = {
  IPPool: IP_POOLS,
  Subnet: SUBNETS,
  ReservedIP: RESERVED_IPS,
  Coordinator: COORDINATORS,
  [NETWORK_DEFINITION_KIND]: NETWORK_DEFINITIONS,
};

/** The outcome for one object. */
export interface Applied {
  /** `IPPool/blue` */
  readonly name: string;
  readonly outcome: "created" | "changed" | "unchanged" | "refused";
  /** Why the API server refused it. */
  readonly reason?: string;
}

/** Writes the objects in the order of the plan. Stops nothing when the server refuses one. */
export async function applyManifests({ api }: ClusterSource, { manifests }: ConversionPlan): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const manifest of manifests) {
    const resource = RESOURCES[manifest.kind];
    if (resource === undefined) throw new TypeError(`No collection of ${manifest.kind}`);
    const path = objectPath(resource, manifest.metadata);
    applied.push(
      await write(api, {
        name: identityOf(manifest),
        path,
        body: manifest,
        contentType: "application/apply-patch+yaml",
        ...(manifest.kind === "Coordinator" ? { supplier: SUPPLIER } : {}),
      }),
    );
  }
  return applied;
}

/** Writes the patches of these workloads. */
export async function applyPatches({ api }: ClusterSource, patches: readonly WorkloadPatch[]): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const each of patches) {
    const { apiVersion, kind, namespace, name, patch } = each;
    const resource = { apiVersion, plural: pluralOf(kind) };
    const path = objectPath(resource, namespace === "" ? { name } : { namespace, name });
    applied.push(
      await write(api, { name: patchName(each), path, body: patch, contentType: "application/merge-patch+json" }),
    );
  }
  return applied;
}

function pluralOf(kind: string): string {
  return `${kind.toLowerCase()}s`;
}

interface Write {
  readonly name: string;
  readonly path: string;
  readonly body: object;
  readonly contentType: string;
  /** Manager that created the object for want of another: its fields give way if no other manager has any. */
  readonly supplier?: string;
}

async function write(api: KubeApi, { name, path, body, contentType, supplier }: Write): Promise<Applied> {
  try {
    const present = await findAt(api, path);
    const before = present && versionOf(present);
    const isSupplied =
      present !== undefined && specManagers(present).every((each) => each === supplier || each === MANAGER);
    const query = { fieldManager: MANAGER, ...(supplier !== undefined && isSupplied ? { force: "true" } : {}) };
    const after = await api.call({ method: "PATCH", path, query, body, contentType });
    if (before === undefined) return { name, outcome: "created" };
    return { name, outcome: before === versionOf(after) ? "unchanged" : "changed" };
  } catch (error) {
    if (error instanceof ApiError) return { name, outcome: "refused", reason: error.message };
    throw error;
  }
}

/** Returns the managers of fields of the specification, without those of the status. */
function specManagers({ metadata }: KubeObject): string[] {
  const { managedFields = [] } = metadata as { managedFields?: readonly ManagedFields[] };
  return managedFields.flatMap(({ manager, subresource = "", fieldsV1 = {} }) =>
    subresource === "" && "f:spec" in fieldsV1 ? [manager] : [],
  );
}

interface ManagedFields {
  readonly manager: string;
  readonly subresource?: string;
  readonly fieldsV1?: object;
}

function findAt(api: KubeApi, path: string): Promise<KubeObject | undefined> {
  return callIfThere(api, { method: "GET", path, patienceMs: CLUSTER_PATIENCE_MS });
}

function versionOf(object: KubeObject): string {
  return String((object.metadata as { resourceVersion?: unknown }).resourceVersion);
}

/** Returns the names of objects of earlier conversions that the plan no longer has. */
export async function listLeftovers({ api }: ClusterSource, { peer, manifests }: ConversionPlan): Promise<string[]> {
  const planned = new Set(manifests.map(identityOf));
  const query = { labelSelector: `${CONVERTED_LABEL}=${peer}` };
  const lists = await Promise.all(
    Object.entries(RESOURCES).map(async ([kind, resource]) => {
      const found = await list(api, resource, query);
      return found.map((object) => identityOf({ ...(object as unknown as Manifest), kind }));
    }),
  );
  return lists
    .flat()
    .filter((name) => !planned.has(name))
    .sort();
}
