/** Reads the present status of pods and nodes from the API server, never from a cache. */
import { ConfigError } from "../../config/config-error.ts";
import { type PodStatus, type PodsOfRows, podFacts } from "../../ipam/leak.ts";
import type { NodeStatus } from "../../ipam/retention.ts";
import { ApiError, isNotFound, type KubeApi, type KubeObject, type Lane } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { keyOf } from "../../kubernetes/object-key.ts";
import type { Log } from "../../lib/log.ts";
import { areTwoMachines } from "../../resources/machine.ts";
import { decodeNode, OUT_OF_SERVICE } from "../../resources/node.ts";
import { decodePod } from "../../resources/pod.ts";
import { POD_READ_PATIENCE_MS } from "../request/add-deadline.ts";

/** Time for which a sweep retries one call of the API server: milliseconds. The next sweep asks again. */
export const SWEEP_PATIENCE_MS = 3_000;

/** Most pods that a sweep reads one by one; more are read in one LIST. */
export const MAX_SINGLE_POD_READS = 16;

/** Pods on one page of such a LIST, of some 10 KB each. */
export const POD_PAGE = 100;

/** A pod as a row names it. */
interface PodName {
  readonly namespace: string;
  readonly pod: string;
}

export interface PodReaderDeps {
  readonly api: KubeApi;
  /** This node. */
  readonly node: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Lane of reads of one pod. Default: "background". */
  readonly lane?: Lane;
}

const ABSENT: PodStatus = { kind: "absent" };
const UNKNOWN: PodStatus = { kind: "unknown" };

export function podKey({ namespace, pod }: PodName): string {
  return `${namespace}/${pod}`;
}

/** Reads one pod. "unknown" for a refused call or an undecodable object; rejects without an answer. */
export async function readPodStatus(
  { api, signal, log, lane = "background" }: PodReaderDeps,
  name: PodName,
): Promise<PodStatus> {
  const path = `/api/v1/namespaces/${encodeURIComponent(name.namespace)}/pods/${encodeURIComponent(name.pod)}`;
  try {
    return decodeStatus(await api.call({ method: "GET", path, lane, patienceMs: SWEEP_PATIENCE_MS, signal }), log);
  } catch (error) {
    if (isNotFound(error)) return ABSENT;
    if (!(error instanceof ApiError)) throw error;
    log.warn({ pod: podKey(name), reason: error.message }, "Reading a pod was refused; its addresses stay");
    return UNKNOWN;
  }
}

/**
 * Reads the pods with a GET each when they are few, else with one consistent LIST of the node's pods. A pod that has an
 * address of this node is in that list or gone. Rejects without an answer to one of them.
 */
export async function readPodStatuses(deps: PodReaderDeps, names: readonly PodName[]): Promise<PodsOfRows> {
  const wanted = new Map(names.map((name) => [podKey(name), name]));
  const isList = wanted.size > MAX_SINGLE_POD_READS;
  const found = isList ? await listPods(deps) : new Map<string, PodStatus>();
  for (const [key, name] of isList ? [] : wanted) found.set(key, await readPodStatus(deps, name));
  return (name) => found.get(podKey(name)) ?? ABSENT;
}

async function listPods({ api, node, signal, log }: PodReaderDeps): Promise<Map<string, PodStatus>> {
  const found = new Map<string, PodStatus>();
  const query = { fieldSelector: `spec.nodeName=${node}`, limit: POD_PAGE };
  for await (const { items } of listPages(api, {
    path: "/api/v1/pods",
    query,
    patienceMs: SWEEP_PATIENCE_MS,
    signal,
  })) {
    for (const item of items) found.set(keyOf(item), decodeStatus(item, log));
  }
  return found;
}

function decodeStatus(object: KubeObject, log: Log): PodStatus {
  try {
    return { kind: "present", pod: podFacts(decodePod(object, `pod ${keyOf(object)}`)) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.warn({ err: error }, "A pod cannot be decoded; its addresses stay");
    return UNKNOWN;
  }
}

/**
 * Returns the names of the nodes that report this machine: of clones several, or another one than before. Rejects when
 * the API server does not answer.
 */
export async function readNodesOf(api: KubeApi, machine: string): Promise<readonly string[]> {
  const names: string[] = [];
  const call = { path: "/api/v1/nodes", patienceMs: SWEEP_PATIENCE_MS } as const;
  for await (const { items } of listPages(api, call)) {
    for (const item of items) {
      const node = decodeNode(item, "Node");
      if (node.machine === machine) names.push(node.name);
    }
  }
  return names;
}

/** Taints of the cluster's own controllers on a node whose kubelet is silent or unwell. */
const SILENT = ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"];

/**
 * Returns whether the node is out of service ("off") or lost (node-lost); "lost" also without such a node, and where
 * another machine has its name by now. Rejects when the API server does not answer.
 */
export async function readNodeStatus(api: KubeApi, node: string, machine: string | undefined): Promise<NodeStatus> {
  const query = { fieldSelector: `metadata.name=${node}` };
  const call = { path: "/api/v1/nodes", query, lane: "pod", patienceMs: POD_READ_PATIENCE_MS } as const;
  for await (const { items } of listPages(api, call)) {
    for (const item of items) {
      const found = decodeNode(item, `Node "${node}"`);
      if (areTwoMachines(found, { machine })) return "lost";
      const { taints } = found;
      if (taints.includes(OUT_OF_SERVICE)) return "off";
      return SILENT.some((taint) => taints.includes(taint)) ? "lost" : "there";
    }
  }
  return "lost";
}
