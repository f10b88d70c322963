/**
 * What the collection is told of nodes and pods: by the caches, which are a hint, and by the API server, right before something is written
 * (allocation rule 16).
 * Effects: reads of the API server.
 */

import { ConfigError } from "../../config/config-error.ts";
import { isFinished, isOwner, isStaticOwner, type PodFacts, podFacts } from "../../ipam/leaks.ts";
import { isNotFound, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { collectionPath, NODES, objectPath, PODS } from "../../kubernetes/paths.ts";
import type { Log } from "../../lib/log.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import { decodeNode, type Node, OUT_OF_SERVICE } from "../../resources/node.ts";
import { decodePod } from "../../resources/pod.ts";
import { COLLECTION_PATIENCE_MS } from "./check-allocation.ts";
import type { NodeStatus, PodStatus } from "./plan-collection.ts";

/** Pods on one page when those of a node are listed: some 10 KB each. @limit */
export const COLLECTION_POD_PAGE = 100;

export interface ReadDeps {
  readonly api: KubeApi;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export function nodeStatus(node: Pick<Node, "taints" | "ready"> | undefined): NodeStatus {
  if (node === undefined) return "absent";
  if (node.taints.includes(OUT_OF_SERVICE)) return "outOfService";
  return node.ready === "True" ? "ready" : "notReady";
}

const NODE_ORDER: readonly NodeStatus[] = ["ready", "notReady", "outOfService", "absent"];
const POD_ORDER: readonly PodStatus[] = ["alive", "unknown", "finished", "replaced", "absent"];

/** Of the nodes of a machine that migrates the one that is more there. */
export function strongestNodeStatus(nodes: readonly NodeStatus[]): NodeStatus {
  return NODE_ORDER.find((each) => nodes.includes(each)) ?? "absent";
}

/** Of its pods the one that has more right to the address. */
export function strongestPodStatus(pods: readonly PodStatus[]): PodStatus {
  return POD_ORDER.find((each) => pods.includes(each)) ?? "absent";
}

/** `found`: who has the holder's name, or is of its UID; undefined: nobody. */
export function podStatus({ podUid }: Holder, found: PodFacts | undefined, node: NodeStatus): PodStatus {
  if (found !== undefined && isOwner(podUid, found)) return isFinished(found) ? "finished" : "alive";
  // Allocation rule 9: a static pod may run without a mirror pod, as long as there is a kubelet.
  if (isStaticOwner(podUid) && (node === "ready" || node === "notReady")) return "unknown";
  return found === undefined ? "absent" : "replaced";
}

export async function readNode({ api, signal }: ReadDeps, name: string): Promise<NodeStatus> {
  const path = objectPath(NODES, { name });
  try {
    const object = await api.call({ method: "GET", path, patienceMs: COLLECTION_PATIENCE_MS, signal });
    return nodeStatus(decodeNode(object, `Node "${name}"`));
  } catch (error) {
    if (isNotFound(error)) return "absent";
    throw error;
  }
}

/** One GET. "unknown" for what cannot be understood. */
export async function readPod({ api, signal }: ReadDeps, holder: Holder, node: NodeStatus): Promise<PodStatus> {
  const { namespace, pod: name } = holder;
  // An object that names no pod cannot be asked after.
  if (namespace === "" || name === "") return "unknown";
  const path = objectPath(PODS, { namespace, name });
  try {
    const facts = factsOf(await api.call({ method: "GET", path, patienceMs: COLLECTION_PATIENCE_MS, signal }));
    return podStatus(holder, facts, node);
  } catch (error) {
    if (isNotFound(error)) return podStatus(holder, undefined, node);
    if (error instanceof ConfigError) return "unknown";
    throw error;
  }
}

/** All pods that were bound to the node, in one LIST: enough to see that one lives, never that one does not. */
export async function listPods({ api, log, signal }: ReadDeps, node: string): Promise<readonly PodFacts[]> {
  const found: PodFacts[] = [];
  const query = { fieldSelector: `spec.nodeName=${node}`, limit: COLLECTION_POD_PAGE };
  const call = { path: collectionPath(PODS), query, patienceMs: COLLECTION_PATIENCE_MS, signal };
  for await (const { items } of listPages(api, call)) {
    for (const item of items) {
      try {
        found.push(factsOf(item));
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        log.debug({ err: error }, "A pod cannot be understood; it is asked for by itself");
      }
    }
  }
  return found;
}

function factsOf(object: KubeObject): PodFacts {
  return podFacts(decodePod(object, describeObject(object)));
}
