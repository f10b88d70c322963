/** Pulls the new image on all nodes before an upgrade: an agent must be replaced while the plugins wait for it. */
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { collectionPath, NODES } from "../kubernetes/paths.ts";
import { listObjects } from "./cluster-api.ts";
import { type DaemonSet, isReady, runOnNodes } from "./node-pods.ts";

interface PullOptions {
  readonly api: KubeApi;
  /** Its pods run the new image and do nothing. */
  readonly puller: DaemonSet;
  readonly limitMs: number;
  readonly print: (line: string) => void;
}

/** Resolves when all nodes that are Ready have the image, or when the time is over. */
export async function pullImage({ api, puller, limitMs, print }: PullOptions): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  const down = new Set<string>();
  for await (const node of listObjects(api, collectionPath(NODES))) if (!isReady(node)) down.add(node.metadata.name);
  const { isComplete, late, absent } = await runOnNodes(api, puller, deadlineMs, down);
  if (isComplete) print("All nodes have the image");
  for (const node of late) {
    const reason = down.has(node) ? "is not Ready, and does not have the image" : "has not pulled the image in time";
    print(`Node ${node} ${reason}; going on`);
  }
  for (const line of absent) print(line);
}
