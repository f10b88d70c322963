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
import type { Log } from "../../lib/log.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import { decodeNode, type Node, OUT_OF_SERVICE } from "../../resources/node.ts";
import { decodePod } from "../../resources/pod.ts";
import { COLLECTION_PATIENCE_MS } from "./look.ts";
import type { NodeSighting, PodSighting } from "./plan-collection.ts";

/** Pods on one page when those of a node are listed: some 10 KB each. @limit */
export const COLLECTION_POD_PAGE = 100;

export interface SightTools {
  readonly api: KubeApi;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export function sightNode(node: Pick<Node, "taints" | "ready"> | undefined): NodeSighting {
  if (node === undefined) return "absent";
  if (node.taints.includes(OUT_OF_SERVICE)) return "outOfService";
  return node.ready === "True" ? "ready" : "notReady";
}

const NODE_ORDER: readonly NodeSighting[] = ["ready", "notReady", "outOfService", "absent"];
const POD_ORDER: readonly PodSighting[] = ["alive", "unknown", "finished", "replaced", "absent"];

/** Of the nodes of a machine that migrates the one that is more there. */
export function bestNode(nodes: readonly NodeSighting[]): NodeSighting {
  return NODE_ORDER.find((each) => nodes.includes(each)) ?? "absent";
}

/** Of its pods the one that has more right to the address. */
export function bestPod(pods: readonly PodSighting[]): PodSighting {
  return POD_ORDER.find((each) => pods.includes(each)) ?? "absent";
}

/** `found`: who has the holder's name, or is of its UID; undefined: nobody. */
export function sightPod({ podUid }: Holder, found: PodFacts | undefined, node: NodeSighting): PodSighting {
  if (found !== undefined && isOwner(podUid, found)) return isFinished(found) ? "finished" : "alive";
  // Allocation rule 9: a static pod may run without a mirror pod, as long as there is a kubelet.
  if (isStaticOwner(podUid) && (node === "ready" || node === "notReady")) return "unknown";
  return found === undefined ? "absent" : "replaced";
}

export async function readNode({ api, signal }: SightTools, name: string): Promise<NodeSighting> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  try {
    const object = await api.call({ method: "GET", path, patienceMs: COLLECTION_PATIENCE_MS, signal });
    return sightNode(decodeNode(object, `Node "${name}"`));
  } catch (error) {
    if (isNotFound(error)) return "absent";
    throw error;
  }
}

/** One GET. "unknown" for what cannot be understood. */
export async function readPod({ api, signal }: SightTools, holder: Holder, node: NodeSighting): Promise<PodSighting> {
  const [namespace, name] = [encodeURIComponent(holder.namespace), encodeURIComponent(holder.pod)];
  // An object that names no pod cannot be asked after.
  if (namespace === "" || name === "") return "unknown";
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  try {
    const facts = factsOf(await api.call({ method: "GET", path, patienceMs: COLLECTION_PATIENCE_MS, signal }));
    return sightPod(holder, facts, node);
  } catch (error) {
    if (isNotFound(error)) return sightPod(holder, undefined, node);
    if (error instanceof ConfigError) return "unknown";
    throw error;
  }
}

/** All pods that were bound to the node, in one LIST: enough to see that one lives, never that one does not. */
export async function listPods({ api, log, signal }: SightTools, node: string): Promise<readonly PodFacts[]> {
  const found: PodFacts[] = [];
  const query = { fieldSelector: `spec.nodeName=${node}`, limit: COLLECTION_POD_PAGE };
  const call = { path: "/api/v1/pods", query, patienceMs: COLLECTION_PATIENCE_MS, signal };
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
