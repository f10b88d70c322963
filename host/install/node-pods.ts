/**
 * A temporary DaemonSet, whose pod is Ready on each node where the work is done. Nodes without an answer are named at
 * the end of the time.
 */
import * as z from "zod";
import { callIfThere, type KubeApi } from "../kubernetes/kube-api.ts";
import { collectionPath, objectPath, PODS, type Resource } from "../kubernetes/paths.ts";
import { applyObject, type ListedObject, listObjects, pollUntil } from "./cluster-api.ts";

export const DAEMON_SETS: Resource = { apiVersion: "apps/v1", plural: "daemonsets" };

const daemonSetSchema = z.looseObject({
  metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
  spec: z.looseObject({ selector: z.object({ matchLabels: z.record(z.string(), z.string()) }) }),
});

export type DaemonSet = z.output<typeof daemonSetSchema>;

/** Throws for text that is no DaemonSet. */
export function decodeDaemonSet(text: string): DaemonSet {
  return daemonSetSchema.parse(JSON.parse(text));
}

/**
 * Applies the DaemonSet, waits until `deadlineMs` (of `performance.now()`) at most, and deletes it. It does not wait
 * for the nodes in `down`, whose pods cannot become Ready before them. Returns whether every node is done, the names of
 * those whose pods are `late`, and a line about nodes without a pod, which a quota or a policy may have refused.
 */
export async function runOnNodes(
  api: KubeApi,
  daemonSet: DaemonSet,
  deadlineMs: number,
  down: ReadonlySet<string> = new Set(),
) {
  const { metadata, spec } = daemonSet;
  const path = objectPath(DAEMON_SETS, metadata);
  await applyObject(api, path, daemonSet);
  const labels = Object.entries(spec.selector.matchLabels).map(([key, value]) => `${key}=${value}`);
  const listLate = async (): Promise<string[]> => {
    const pods = await Array.fromAsync(listObjects(api, collectionPath(PODS, metadata.namespace), labels.join(",")));
    return pods.filter((pod) => !isReady(pod)).map((pod) => `${pod.spec?.nodeName}`);
  };
  let missing = undefined as number | undefined;
  await pollUntil(deadlineMs, async () => {
    missing = countMissing(await callIfThere(api, { method: "GET", path }));
    if (missing === 0 || missing === undefined || missing > down.size) return missing === 0;
    const late = await listLate();
    // Pods that are not created yet are missing, too.
    return late.length >= missing && late.every((node) => down.has(node));
  });
  const isComplete = missing === 0;
  const late = isComplete ? [] : await listLate();
  const absent = (missing ?? 0) - late.length;
  const why = `kubectl get events -n ${metadata.namespace} --field-selector involvedObject.name=${metadata.name}`;
  const nodes = absent === 1 ? "1 node" : `${absent} nodes`;
  await callIfThere(api, { method: "DELETE", path, query: { propagationPolicy: "Background" } });
  return {
    ...{ isComplete, late },
    absent: absent > 0 ? [`${nodes} without a pod of DaemonSet "${metadata.name}"; why: ${why}`] : [],
  };
}

/** On how many nodes its pod should be, and is. */
export const daemonSetProgress = z.object({
  metadata: z.object({ generation: z.number() }),
  status: z.object({
    observedGeneration: z.number().default(0),
    desiredNumberScheduled: z.number().default(0),
    numberReady: z.number().default(0),
    updatedNumberScheduled: z.number().default(0),
  }),
});

/** Returns how many nodes are not done; undefined while that is unknown. */
function countMissing(daemonSet: unknown): number | undefined {
  const { data } = daemonSetProgress.safeParse(daemonSet);
  if (data === undefined || data.status.observedGeneration < data.metadata.generation) return undefined;
  return Math.max(0, data.status.desiredNumberScheduled - data.status.numberReady);
}

export function isReady({ status }: ListedObject): boolean {
  const conditions = Array.isArray(status?.conditions) ? status.conditions : [];
  return conditions.some((each) => each.type === "Ready" && each.status === "True");
}
