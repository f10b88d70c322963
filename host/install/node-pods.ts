/** A DaemonSet for a while: its pod is Ready on each node where the work is done. Nodes that do not answer are named when the time is over. */
import { z } from "zod";
import type { KubeApi } from "../kubernetes/kube-api.ts";
import { collectionPath, objectPath, PODS, type Resource } from "../kubernetes/paths.ts";
import { applyObject, callIfThere, type ListedObject, listObjects, pollUntil } from "./cluster-api.ts";

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

interface NodeWork {
  /** Every node is done. */
  readonly isComplete: boolean;
  /** Names of the nodes whose pods are not Ready. */
  readonly late: readonly string[];
}

/** Applies the DaemonSet, waits until `deadlineMs` (of `performance.now()`) at most, and deletes it. */
export async function runOnNodes(api: KubeApi, daemonSet: DaemonSet, deadlineMs: number): Promise<NodeWork> {
  const { metadata, spec } = daemonSet;
  const path = objectPath(DAEMON_SETS, metadata);
  await applyObject(api, path, daemonSet);
  const isDone = async (): Promise<boolean> => areAllReady(await callIfThere(api, { method: "GET", path }));
  const isComplete = await pollUntil(deadlineMs, isDone);
  const labels = Object.entries(spec.selector.matchLabels).map(([key, value]) => `${key}=${value}`);
  const pods = isComplete ? [] : await listObjects(api, collectionPath(PODS, metadata.namespace), labels.join(","));
  await callIfThere(api, { method: "DELETE", path, query: { propagationPolicy: "Background" } });
  return { isComplete, late: pods.filter((pod) => !isReady(pod)).map((pod) => `${pod.spec?.nodeName}`) };
}

const progressSchema = z.object({
  metadata: z.object({ generation: z.number() }),
  status: z.object({
    observedGeneration: z.number().default(0),
    desiredNumberScheduled: z.number().default(0),
    numberReady: z.number().default(0),
  }),
});

function areAllReady(daemonSet: unknown): boolean {
  const { data } = progressSchema.safeParse(daemonSet);
  if (data === undefined || data.status.observedGeneration < data.metadata.generation) return false;
  return data.status.numberReady >= data.status.desiredNumberScheduled;
}

function isReady({ status }: ListedObject): boolean {
  const conditions = Array.isArray(status?.conditions) ? status.conditions : [];
  return conditions.some((each) => each.type === "Ready" && each.status === "True");
}
