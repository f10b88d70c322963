/**
 * Whether a node is lost: a pod of it may run on although nobody can see it (allocation rule 2).
 * Called by the cluster's registry, when the next pod of a workload's member wants an address that an earlier one has on another node.
 * Effects: a list of one object of the API server.
 */
import type { KubeApi } from "../../../kubernetes/kube-api.ts";
import { listPages } from "../../../kubernetes/list.ts";
import { decodeNode, OUT_OF_SERVICE } from "../../../resources/node.ts";
import { POD_READ_PATIENCE_MS } from "../../limits.ts";

/** By which the cluster's own controllers mark a node whose kubelet is silent or unwell. */
const SILENT = ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"];

/** Rejects when the API server cannot be asked. */
export async function isNodeLost(api: KubeApi, node: string): Promise<boolean> {
  const query = { fieldSelector: `metadata.name=${node}` };
  const call = { path: "/api/v1/nodes", query, lane: "pod", patienceMs: POD_READ_PATIENCE_MS } as const;
  for await (const { items } of listPages(api, call)) {
    for (const item of items) {
      const { taints } = decodeNode(item, `Node "${node}"`);
      return !taints.includes(OUT_OF_SERVICE) && SILENT.some((taint) => taints.includes(taint));
    }
  }
  return true;
}
