/**
 * The Kubernetes Node, as far as Berth reads it.
 */
import { z } from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { isDeleting, metadata } from "./fields/metadata.ts";

/** A taint: a person, or a tool that cuts the power, says by it that the node is off (allocation rule 2). */
export const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

export interface Node {
  readonly kind: "Node";
  readonly name: string;
  readonly uid: string;
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
  readonly deleting: boolean;
  /** Keys of its taints. */
  readonly taints: readonly string[];
  /** Of the condition `Ready`; "Unknown": its kubelet is silent. */
  readonly ready: "True" | "False" | "Unknown";
  /** The node's share of the cluster's pod networks, as it is written; none where nobody gives out shares. */
  readonly podCidrs: readonly string[];
}

/** The API server leaves `kind` out of the items of a list. */
const nodeSchema = z.object({
  kind: z.literal("Node").optional(),
  metadata,
  spec: z
    .object({
      taints: z.array(z.object({ key: z.string() })).nullish(),
      podCIDRs: z.array(z.string()).nullish(),
      podCIDR: z.string().nullish(),
    })
    .nullish(),
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish() }).nullish(),
});

/** Throws ConfigError. */
export function decodeNode(value: unknown, source: string): Node {
  const { metadata, spec, status } = decodeConfig(nodeSchema, value, source);
  const { name, uid = "", labels, annotations } = metadata;
  const ready = status?.conditions?.find(({ type }) => type === "Ready")?.status;
  return {
    ...{ kind: "Node", name, uid, labels, annotations },
    deleting: isDeleting(metadata),
    taints: (spec?.taints ?? []).map(({ key }) => key),
    ready: ready === "True" || ready === "False" ? ready : "Unknown",
    podCidrs: (spec?.podCIDRs ?? [spec?.podCIDR ?? ""]).filter((text) => text !== ""),
  };
}
