/** The status of nodes and pods for the collection, from caches, or before a write from the API server (leak). */

import { isFinished, isOwner, isStaticOwner, type PodFacts, podFacts } from "../../ipam/leak.ts";
import { callIfThere, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { describeObject } from "../../kubernetes/object-key.ts";
import { collectionPath, NODES, type ObjectName, objectPath, PODS, type Resource } from "../../kubernetes/paths.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import { areTwoMachines } from "../../resources/machine.ts";
import { decodeNode, type Node, OUT_OF_SERVICE } from "../../resources/node.ts";
import { decodePod } from "../../resources/pod.ts";
import { ifDecodable } from "../if-decodable.ts";
import type { NodeStatus, PodStatus, PodsStatus } from "./plan-collection.ts";

/** Pods on one page of a node's list: some 10 KB each. */
const COLLECTION_POD_PAGE = 100;

interface ReadDeps {
  readonly api: KubeApi;
  readonly signal: AbortSignal;
}

/** `machine`: the node's former machine. If another one has the name now, the node counts as absent. */
export function nodeStatus(
  node: (Pick<Node, "taints" | "ready"> & Partial<Pick<Node, "machine">>) | undefined,
  machine?: string,
): NodeStatus {
  if (node === undefined || areTwoMachines(node, { machine })) return "absent";
  if (node.taints.includes(OUT_OF_SERVICE)) return "outOfService";
  return node.ready === "True" ? "ready" : "notReady";
}

/** Returns the status of the pods with an address: two while a machine migrates. `nodes`: theirs, in their order. */
export function podsStatus(pods: readonly PodStatus[], nodes: readonly NodeStatus[]): PodsStatus {
  const isLeft = pods.some((pod, index) => pod !== "alive" && pod !== "unknown" && nodes[index] === "ready");
  if (pods.includes("alive")) return isLeft && !pods.includes("unknown") ? "outliving" : "alive";
  if (pods.includes("unknown")) return "unknown";
  const isThere = nodes.some((node) => node === "ready" || node === "notReady");
  const [first = "absent"] = pods;
  return pods.length > 1 && isThere ? "unconfirmed" : first;
}

/** `found` has the holder's name or UID; undefined if there is no such pod. */
export function podStatus({ podUid }: Holder, found: PodFacts | undefined, node: NodeStatus): PodStatus {
  if (found !== undefined && isOwner(podUid, found)) return isFinished(found) ? "finished" : "alive";
  // static-pods: a static pod may run without a mirror pod as long as its node has a kubelet.
  if (isStaticOwner(podUid) && (node === "ready" || node === "notReady")) return "unknown";
  return found === undefined ? "absent" : "replaced";
}

/** One GET for a decision of the collection. Returns undefined if there is no such object. */
export function readObject(
  { api, signal }: ReadDeps,
  resource: Resource,
  name: ObjectName,
): Promise<KubeObject | undefined> {
  const path = objectPath(resource, name);
  return callIfThere(api, { method: "GET", path, patienceMs: COLLECTION_PATIENCE_MS, signal });
}

/** `machine`: as for {@link nodeStatus}. */
export async function readNode(deps: ReadDeps, name: string, machine?: string): Promise<NodeStatus> {
  const object = await readObject(deps, NODES, { name });
  return nodeStatus(object && decodeNode(object, `Node "${name}"`), machine);
}

/** One GET. Returns "unknown" for a pod that cannot be decoded. */
export async function readPod(deps: ReadDeps, holder: Holder, node: NodeStatus): Promise<PodStatus> {
  const { namespace, pod: name } = holder;
  // An allocation that names no pod cannot be looked up.
  if (namespace === "" || name === "") return "unknown";
  const object = await readObject(deps, PODS, { namespace, name });
  const found = object && ifDecodable(() => factsOf(object));
  return object !== undefined && found === undefined ? "unknown" : podStatus(holder, found, node);
}

/** Lists all pods of the node: proves that a pod is alive, never that it is not. */
export async function listPods({ api, signal }: ReadDeps, node: string): Promise<readonly PodFacts[]> {
  const found: PodFacts[] = [];
  const query = { fieldSelector: `spec.nodeName=${node}`, limit: COLLECTION_POD_PAGE };
  const call = { path: collectionPath(PODS), query, patienceMs: COLLECTION_PATIENCE_MS, signal };
  for await (const { items } of listPages(api, call)) {
    // A pod that cannot be decoded is read by itself.
    for (const item of items) found.push(...(ifDecodable(() => [factsOf(item)]) ?? []));
  }
  return found;
}

function factsOf(object: KubeObject): PodFacts {
  return podFacts(decodePod(object, describeObject(object)));
}

/** Time limit of one read of the collection: milliseconds. The next check reads again. */
export const COLLECTION_PATIENCE_MS = 3_000;
