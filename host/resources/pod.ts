/**
 * The Kubernetes Pod, as far as Berth reads it.
 * Called by the manifests and the watches.
 * Effects: none.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { openObject } from "../lib/schema.ts";
import { isDeleting, metadata, type OwnerReference } from "./metadata.ts";

export interface Pod {
  readonly kind: "Pod";
  /** `default` when the manifest names none. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
  readonly nodeName?: string | undefined;
  readonly deleting: boolean;
  /** `status.phase`. */
  readonly phase?: string | undefined;
  readonly ownerReferences: readonly OwnerReference[];
  readonly hostNetwork: boolean;
}

const podSchema = z.object({
  kind: z.literal("Pod"),
  metadata,
  spec: openObject({ nodeName: z.string().optional(), hostNetwork: z.boolean().optional() }).optional(),
  status: z.object({ phase: z.string().optional() }).nullish(),
});

/** Throws ConfigError. */
export function decodePod(value: unknown, source: string): Pod {
  const { kind, metadata, spec, status } = decodeConfig(podSchema, value, source);
  const { name, namespace, uid, labels, annotations, ownerReferences } = metadata;
  return {
    kind,
    namespace: namespace ?? "default",
    name,
    uid,
    labels,
    annotations,
    nodeName: spec?.nodeName,
    deleting: isDeleting(metadata),
    phase: status?.phase,
    ownerReferences,
    hostNetwork: spec?.hostNetwork ?? false,
  };
}
