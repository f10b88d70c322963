/**
 * The Kubernetes Pod, as far as Berth reads it.
 */
import { z } from "zod";
import { ANNOTATION_PREFIX, DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from "../config/annotations.ts";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { refuseSlips } from "../lib/schema.ts";
import { countLabels, cutMetadata, keepAnnotations, keepController, keepLabels } from "./fields/kept-metadata.ts";
import { isDeleting, isServed, metadata, type OwnerReference } from "./fields/metadata.ts";

/** The annotation by which a mirror pod tells of which static pod it is (allocation rule 9). */
export const CONFIG_HASH = "kubernetes.io/config.hash";

/** The kubelet's mark on the mirror of a static pod: the hash again. */
export const CONFIG_MIRROR = "kubernetes.io/config.mirror";

/** The label of the pods in which virtual machines run. */
export const LAUNCHER_LABEL = "kubevirt.io";

/** What is read beside Berth's own annotations. */
const OTHER_ANNOTATIONS = [NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION, CONFIG_HASH, CONFIG_MIRROR];

export interface Pod {
  readonly kind: "Pod";
  /** `default` when the manifest names none. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  /** At most MAX_KEPT_LABELS of them. */
  readonly labels: Labels;
  /** How many the object has. */
  readonly labelCount: number;
  /** Of those that are read. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly nodeName?: string | undefined;
  /** It has a deletionTimestamp. */
  readonly deleting: boolean;
  /** `status.phase`. */
  readonly phase?: string | undefined;
  /** `status.reason`, such as `Evicted`. */
  readonly reason?: string | undefined;
  /** The one that controls it, or none. */
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
  const cut = cutMetadata(value, ({ labels, annotations, ownerReferences }) => ({
    labels: keepLabels(labels, [LAUNCHER_LABEL]),
    annotations: keepAnnotations(annotations, ANNOTATION_PREFIX, OTHER_ANNOTATIONS),
    ownerReferences: keepController(ownerReferences),
  }));
  const { metadata, spec, status } = decodeConfig(podSchema, cut, source);
  const { name, namespace, uid, labels, annotations, ownerReferences } = metadata;
  return {
    kind: "Pod",
    namespace: namespace ?? "default",
    name,
    uid,
    labels,
    labelCount: countLabels(value),
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
