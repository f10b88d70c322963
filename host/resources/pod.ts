/** The fields of a Kubernetes Pod that Berth reads. */
import * as z from "zod";
import {
  ANNOTATION_PREFIX,
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  RETAIN_ANNOTATION,
} from "../config/annotations.ts";
import { decodeConfig } from "../config/config-error.ts";
import { foreignAnnotations } from "../config/foreign-annotations.ts";
import type { Labels } from "../config/label-selector.ts";
import { refuseSlips } from "../lib/schema.ts";
import { isDeleting, isServed, metadata, type OwnerReference } from "./fields/metadata.ts";

/** Annotation of a mirror pod that identifies its static pod (static-pods in docs/develop/allocation.md). */
export const CONFIG_HASH = "kubernetes.io/config.hash";

/** Annotation that the kubelet sets on the mirror of a static pod, with the value of {@link CONFIG_HASH}. */
export const CONFIG_MIRROR = "kubernetes.io/config.mirror";

/** Name of the scheduling gate by which a pod waits until the pools that it selects have room. */
export const ADDRESS_GATE = "ipam.vendor.io/address";

/** Label of pods that run virtual machines. */
export const LAUNCHER_LABEL = "kubevirt.io";

/** Label of pods to which a virtual machine migrates; its value is the migration's UID. */
export const MIGRATION_LABEL = "kubevirt.io/migrationJobUID";

/** Annotations that Berth reads besides its own. */
const OTHER_ANNOTATIONS = [NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION, CONFIG_HASH, CONFIG_MIRROR];

/** Longest annotation of a {@link reducePod reduced} pod: UTF-16 units. A hash is shorter. */
const MAX_IDENTITY_LENGTH = 64;

export interface Pod {
  readonly kind: "Pod";
  /** Default: `default`. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly labels: Labels;
  /** Only those that Berth reads. */
  readonly annotations: Readonly<Record<string, string>>;
  /** Names of annotations of other IPAMs; absent: none. */
  readonly foreignAnnotations?: readonly string[];
  readonly nodeName?: string | undefined;
  readonly deleting: boolean;
  readonly phase?: string | undefined;
  /** Such as `Evicted`. */
  readonly reason?: string | undefined;
  /** Undefined if nothing controls it. */
  readonly controller?: OwnerReference | undefined;
  readonly hostNetwork: boolean;
  /** Whether the kubelet has reported addresses or a ready sandbox. */
  readonly hasSandbox: boolean;
  /** Whether the phase is Succeeded or Failed, which are final under any restart policy. */
  readonly isFinished: boolean;
  /** The pod has only the fields that identify its owner: its ADD reads the pod itself. Absent: no. */
  readonly isReduced?: true;
}

const podSpec = z.looseObject({ nodeName: z.string().optional(), hostNetwork: z.boolean().optional() });

const podStatus = z.object({
  phase: z.string().optional(),
  reason: z.string().optional(),
  podIPs: z.array(z.unknown()).nullish(),
  conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
});

/** The API server omits `kind` in the items of a list. */
const podSchema = z
  .object({ kind: z.literal("Pod").optional(), metadata, spec: podSpec.optional(), status: podStatus.nullish() })
  .superRefine(({ metadata, spec }, context) => {
    if (!isServed(metadata) && spec !== undefined) refuseSlips(spec, Object.keys(podSpec.shape), context, ["spec"]);
  });

/** Decodes a Pod; `source` names it in the error. Throws ConfigError. */
export function decodePod(value: unknown, source: string): Pod {
  const { metadata, spec, status } = decodeConfig(podSchema, value, source);
  const { name, namespace, uid, labels, annotations, ownerReferences } = metadata;
  const foreign = foreignAnnotations(annotations);
  return {
    kind: "Pod",
    namespace: namespace ?? "default",
    name,
    uid,
    labels,
    annotations: readAnnotations(annotations),
    ...(foreign.length === 0 ? {} : { foreignAnnotations: foreign }),
    nodeName: spec?.nodeName,
    deleting: isDeleting(metadata),
    phase: status?.phase,
    reason: status?.reason,
    controller: ownerReferences.find(({ controller }) => controller),
    hostNetwork: spec?.hostNetwork ?? false,
    hasSandbox: hasSandbox(status ?? {}),
    isFinished: status?.phase === "Succeeded" || status?.phase === "Failed",
  };
}

/** Returns the annotations of a pod, or of its template, that Berth reads. */
export function readAnnotations(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const isRead = (key: string): boolean => key.startsWith(ANNOTATION_PREFIX) || OTHER_ANNOTATIONS.includes(key);
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => isRead(key)));
}

/**
 * Returns the pod without the fields that only its ADD reads, with its identity, its controller, and marks of a
 * machine, a static pod and retention.
 */
export function reducePod({ foreignAnnotations: _, ...pod }: Pod): Pod {
  const labels = keepShort(pod.labels, [LAUNCHER_LABEL, MIGRATION_LABEL]);
  const annotations = keepShort(pod.annotations, [CONFIG_HASH, CONFIG_MIRROR, RETAIN_ANNOTATION]);
  return { ...pod, labels, annotations, isReduced: true };
}

function keepShort(texts: Readonly<Record<string, string>>, keys: readonly string[]): Readonly<Record<string, string>> {
  const short = (key: string): boolean => (texts[key] ?? "").length <= MAX_IDENTITY_LENGTH;
  return Object.fromEntries(Object.entries(texts).filter(([key]) => keys.includes(key) && short(key)));
}

function hasSandbox({ podIPs, conditions }: z.output<typeof podStatus>): boolean {
  const isReady = conditions?.some(({ type, status }) => type === "PodReadyToStartContainers" && status === "True");
  return isReady === true || (podIPs ?? []).length > 0;
}
