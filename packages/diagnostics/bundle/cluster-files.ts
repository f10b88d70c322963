/**
 * The part of a cluster's support bundle that comes from its API server: versions, objects, events, nodes, Berth's
 * pods. Anything that cannot be read is noted.
 */

import type { BerthPod } from "../../../host/cli/berth-pods.ts";
import { CLUSTER_PATIENCE_MS } from "../../../host/cli/read-objects.ts";
import type { KubeApi, KubeCall, KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { BERTH_LABELS } from "../../../host/kubernetes/labels.ts";
import { listPages } from "../../../host/kubernetes/list.ts";
import {
  CONFIG_MAPS,
  collectionPath,
  IPAM_CLAIMS,
  LEASES,
  NETWORK_DEFINITIONS,
  NODES,
  type Resource,
} from "../../../host/kubernetes/paths.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import {
  COORDINATORS,
  IP_ALLOCATIONS,
  IP_POOL_USAGES,
  IP_POOLS,
  RESERVED_IPS,
  SUBNETS,
} from "../../../host/resources/collections.ts";
import { type BundleFile, MAX_BUNDLE_FILE } from "./archive.ts";
import { failedFile, json } from "./host-files.ts";

const DEFINITIONS: Resource = { apiVersion: "apiextensions.k8s.io/v1", plural: "customresourcedefinitions" };
const CORE_EVENTS: Resource = { apiVersion: "v1", plural: "events" };

/** Settings, and the network list of the chart. */
const CONFIG_NAMES = /^vendor-conf$|-conflist$/;

/** Groups of Berth's kinds, and of those that it reads. */
const GROUPS: ReadonlySet<unknown> = new Set(["ipam.vendor.io", "k8s.cni.cncf.io"]);

/** In this order: if they do not all fit, the end is missing. */
const OBJECTS: readonly Resource[] = [
  COORDINATORS,
  SUBNETS,
  IP_POOLS,
  IP_POOL_USAGES,
  RESERVED_IPS,
  NETWORK_DEFINITIONS,
  IPAM_CLAIMS,
  IP_ALLOCATIONS,
];

/** Collects the most important files first. */
export async function collectClusterFiles(
  api: KubeApi,
  pods: readonly BerthPod[],
  about: object,
): Promise<BundleFile[]> {
  const namespaces = [...new Set(pods.map(({ namespace }) => namespace))].sort();
  const files: BundleFile[] = [{ path: "about.json", text: json({ ...about, ...(await readVersion(api)) }) }];
  files.push({ path: "pods.jsonl", text: linesOf(pods) });
  const add = async (path: string, listing: Listing): Promise<void> =>
    void files.push(await listed(api, path, listing));
  await add("definitions.jsonl", { resource: DEFINITIONS, shape: shapeOfDefinition });
  for (const namespace of namespaces) {
    const path = `configuration/${namespace}`;
    await add(`${path}-configmaps.jsonl`, { resource: CONFIG_MAPS, namespace, shape: named(CONFIG_NAMES) });
    for (const plural of ["daemonsets", "deployments"]) {
      const resource = { apiVersion: "apps/v1", plural };
      const query = { labelSelector: BERTH_LABELS };
      await add(`${path}-${plural}.jsonl`, { resource, namespace, query, shape: withoutValues });
    }
    await add(`${path}-leases.jsonl`, { resource: LEASES, namespace, shape: named(/berth/) });
  }
  for (const source of ["berth-controller", "berth-agent"])
    await add(`events/${source}.jsonl`, { resource: CORE_EVENTS, query: { fieldSelector: `source=${source}` } });
  const names = new Set(pods.flatMap(({ name }) => namesOf(name)));
  const aboutPods = (event: KubeObject) => (names.has(String(Object(event.involvedObject).name)) ? event : undefined);
  for (const namespace of namespaces)
    await add(`events/pods-of-${namespace}.jsonl`, { resource: CORE_EVENTS, namespace, shape: aboutPods });
  await add("nodes.jsonl", { resource: NODES, shape: shapeOfNode });
  for (const resource of OBJECTS) await add(`objects/${resource.plural}.jsonl`, { resource });
  return files;
}

async function readVersion(api: KubeApi): Promise<object> {
  const { gitVersion, platform } = await api.call({ method: "GET", path: "/version", patienceMs: CLUSTER_PATIENCE_MS });
  return { apiServer: gitVersion, platform };
}

/** Returns the names of a pod and of its possible owners: `berth-agent-x2x7k`, `berth-agent`. */
function namesOf(pod: string): string[] {
  const parts = pod.split("-");
  return [pod, parts.slice(0, -1).join("-"), parts.slice(0, -2).join("-")].filter((name) => name !== "");
}

const named = (form: RegExp) => (object: KubeObject) =>
  form.test(String(Object(object.metadata).name)) ? object : undefined;

interface Listing {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly query?: KubeCall["query"];
  /** Returns the part of an object that is in the bundle; undefined: nothing. Default: all of it. */
  readonly shape?: (object: KubeObject) => object | undefined;
}

/** Returns the objects of a collection, one on a line, as many as fit. */
async function listed(
  api: KubeApi,
  path: string,
  { resource, namespace, query = {}, shape = (object) => object }: Listing,
): Promise<BundleFile> {
  const list = { path: collectionPath(resource, namespace), query, patienceMs: CLUSTER_PATIENCE_MS };
  const lines: string[] = [];
  let size = 0;
  try {
    for await (const { items } of listPages(api, list)) {
      for (const item of items) {
        const shaped = shape(item);
        if (shaped === undefined) continue;
        const line = `${JSON.stringify(withoutHistory(shaped))}\n`;
        size += Buffer.byteLength(line);
        if (size > MAX_BUNDLE_FILE) return { path, text: lines.join(""), note: `the first ${lines.length} objects` };
        lines.push(line);
      }
    }
  } catch (error) {
    const reason = messageOf(error);
    return lines.length === 0 ? failedFile(path, reason) : { path, text: lines.join(""), note: reason };
  }
  return { path, text: lines.join("") };
}

function linesOf(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Without the fields that kubectl and the API server keep for themselves: old values may be in them. */
function withoutHistory(object: object): object {
  const { metadata } = object as { readonly metadata?: unknown };
  if (typeof metadata !== "object" || metadata === null) return object;
  const { managedFields: _, annotations, ...rest } = metadata as Readonly<Record<string, unknown>>;
  const { [LAST_APPLIED]: __, ...kept } = Object(annotations) as Readonly<Record<string, unknown>>;
  return { ...object, metadata: { ...rest, ...(Object.keys(kept).length === 0 ? {} : { annotations: kept }) } };
}

/** Environment variables of containers by their names only: a value may be a secret whatever its name is. */
function withoutValues(object: KubeObject): object {
  const bare = JSON.stringify(withoutHistory(object), (key, value: unknown) =>
    key === "env" && Array.isArray(value) ? value.map((each) => ({ name: Object(each).name })) : value,
  );
  return JSON.parse(bare) as object;
}

function shapeOfDefinition({ metadata, spec, status }: KubeObject): object | undefined {
  const { group, names, scope, versions } = Object(spec);
  if (!GROUPS.has(group)) return undefined;
  const { storedVersions, conditions } = Object(status);
  const served = Array.isArray(versions) ? versions : [];
  return {
    name: Object(metadata).name,
    labels: Object(metadata).labels,
    creationTimestamp: Object(metadata).creationTimestamp,
    kind: Object(names).kind,
    scope,
    versions: served.map(({ name, served, storage }) => ({ name, served, storage })),
    storedVersions,
    conditions,
  };
}

function shapeOfNode({ metadata, spec, status }: KubeObject): object {
  const { name, creationTimestamp, labels } = Object(metadata);
  const { unschedulable, taints, podCIDRs } = Object(spec);
  const { nodeInfo, conditions, addresses } = Object(status);
  const states = Array.isArray(conditions) ? conditions : [];
  const brief = Object.fromEntries(states.map(({ type, status }) => [type, status]));
  return { name, creationTimestamp, labels, unschedulable, taints, podCIDRs, nodeInfo, conditions: brief, addresses };
}
