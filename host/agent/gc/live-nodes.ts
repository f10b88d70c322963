/**
 * What the API server says of another node, on which an earlier pod of a workload's member may run on (allocation rules 2 and 8).
 * Effects: a list of one object of the API server.
 */

import type { NodeStatus } from "../../ipam/retention.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { decodeNode, OUT_OF_SERVICE } from "../../resources/node.ts";
import { POD_READ_PATIENCE_MS } from "../cluster/identity.ts";

/** By which the cluster's own controllers mark a node whose kubelet is silent or unwell. */
const SILENT = ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"];

/** Rejects when the API server cannot be asked. */
export async function readNodeStatus(api: KubeApi, node: string): Promise<NodeStatus> {
  const query = { fieldSelector: `metadata.name=${node}` };
  const call = { path: "/api/v1/nodes", query, lane: "pod", patienceMs: POD_READ_PATIENCE_MS } as const;
  for await (const { items } of listPages(api, call)) {
    for (const item of items) {
      const { taints } = decodeNode(item, `Node "${node}"`);
      if (taints.includes(OUT_OF_SERVICE)) return "off";
      return SILENT.some((taint) => taints.includes(taint)) ? "lost" : "there";
    }
  }
  return "lost";
}
