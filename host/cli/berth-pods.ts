/** The pods of Berth's agents and controllers, as the API server shows them. */
import * as z from "zod";
import type { KubeApi, KubeObject } from "../kubernetes/kube-api.ts";
import { BERTH_LABELS } from "../kubernetes/labels.ts";
import { PODS } from "../kubernetes/paths.ts";
import { readObjects } from "./read-objects.ts";

const berthPod = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.object({
    nodeName: z.string().default(""),
    containers: z.array(z.object({ image: z.string().default("") })),
  }),
  status: z
    .object({
      phase: z.string().default("Unknown"),
      startTime: z.string().default(""),
      conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
      containerStatuses: z.array(z.object({ restartCount: z.int().default(0) })).default([]),
    })
    .prefault({}),
});

export interface BerthPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** `agent`, `controller` */
  readonly component: string;
  readonly phase: string;
  readonly isReady: boolean;
  readonly restarts: number;
  readonly image: string;
  /** RFC 3339; "" if it has not started. */
  readonly startedAt: string;
}

/** Rejects if the API server does not answer. */
export function readBerthPods(api: KubeApi): Promise<BerthPod[]> {
  return readObjects(api, { resource: PODS, query: { labelSelector: BERTH_LABELS } }, podOf);
}

function podOf(object: KubeObject): BerthPod | undefined {
  const decoded = berthPod.safeParse(object);
  if (!decoded.success) return undefined;
  const { metadata, spec, status } = decoded.data;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    node: spec.nodeName,
    component: metadata.labels["app.kubernetes.io/component"] ?? "unknown",
    phase: status.phase,
    isReady: status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
    restarts: status.containerStatuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
    image: spec.containers[0]?.image ?? "",
    startedAt: status.startTime,
  };
}
