/**
 * The Kubernetes Pod, as far as Berth reads it.
 * Called by the manifests and the watches.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { refuseSlips } from "../lib/schema.ts";
import { isDeleting, isServed, metadata, type OwnerReference } from "./fields/metadata.ts";

export interface Pod {
  readonly kind: "Pod";
  /** `default` when the manifest names none. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
  readonly nodeName?: string | undefined;
  /** It has a deletionTimestamp. */
  readonly deleting: boolean;
  /** `status.phase`. */
  readonly phase?: string | undefined;
  /** `status.reason`, such as `Evicted`. */
  readonly reason?: string | undefined;
  readonly ownerReferences: readonly OwnerReference[];
  readonly hostNetwork: boolean;
  /** The kubelet has reported addresses of it, or that its sandbox is ready. */
  readonly hasSandbox: boolean;
  /** It ran and will not run again: the phases Succeeded and Failed are final, whatever the restart policy. */
  readonly isFinished: boolean;
}

const podSpec = z.looseObject({ nodeName: z.string().optional(), hostNetwork: z.boolean().optional() });

const podStatus = z.object({
  phase: z.string().optional(),
  reason: z.string().optional(),
  podIPs: z.array(z.unknown()).nullish(),
  conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
});

/** The API server leaves `kind` out of the items of a list. */
const podSchema = z
  .object({ kind: z.literal("Pod").optional(), metadata, spec: podSpec.optional(), status: podStatus.nullish() })
  .superRefine(({ metadata, spec }, context) => {
    if (!isServed(metadata) && spec !== undefined) refuseSlips(spec, Object.keys(podSpec.shape), context, ["spec"]);
  });

/** Throws ConfigError. */
export function decodePod(value: unknown, source: string): Pod {
  const { metadata, spec, status } = decodeConfig(podSchema, value, source);
  const { name, namespace, uid, labels, annotations, ownerReferences } = metadata;
  return {
    kind: "Pod",
    namespace: namespace ?? "default",
    name,
    uid,
    labels,
    annotations,
    nodeName: spec?.nodeName,
    deleting: isDeleting(metadata),
    phase: status?.phase,
    reason: status?.reason,
    ownerReferences,
    hostNetwork: spec?.hostNetwork ?? false,
    hasSandbox: hasSandbox(status ?? {}),
    isFinished: status?.phase === "Succeeded" || status?.phase === "Failed",
  };
}

function hasSandbox({ podIPs, conditions }: z.output<typeof podStatus>): boolean {
  const isReady = conditions?.some(({ type, status }) => type === "PodReadyToStartContainers" && status === "True");
  return isReady === true || (podIPs ?? []).length > 0;
}
