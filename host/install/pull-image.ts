/** Before an upgrade: the new image on all nodes, because an agent must be replaced within the time that the plugins wait for it. */
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { type DaemonSet, runOnNodes } from "./node-pods.ts";

interface PullOptions {
  readonly api: KubeApi;
  /** Its pods, of the new image, do nothing. */
  readonly puller: DaemonSet;
  readonly limitMs: number;
  readonly print: (line: string) => void;
}

/** Resolves when all nodes have the image, or when the time is over: an upgrade does not wait for a node that is down. */
export async function pullImage({ api, puller, limitMs, print }: PullOptions): Promise<void> {
  const { isComplete, late } = await runOnNodes(api, puller, performance.now() + limitMs);
  if (isComplete) print("All nodes have the image");
  for (const node of late) print(`Node ${node} has not pulled the image in time; going on`);
}
