/** The fields of a Kubernetes Node that Berth reads. */
import * as z from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { Labels } from "../config/label-selector.ts";
import { isDeleting, metadata } from "./fields/metadata.ts";
import { machineOf } from "./machine.ts";

/**
 * Taint by which an administrator, or a tool that cuts the power, confirms that the node is off (node-lost in
 * docs/develop/allocation.md).
 */
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
  /** Status of the condition `Ready`; "Unknown" if the kubelet does not report. */
  readonly ready: "True" | "False" | "Unknown";
  /** The node's pod CIDRs, as written; empty if the cluster does not assign any. */
  readonly podCidrs: readonly string[];
  /** Addresses and host names from `status.addresses`, as written. */
  readonly addresses: readonly string[];
  /** {@link machineOf} its kubelet's report; undefined without a report. */
  readonly machine: string | undefined;
  /** Boot ID of the kernel as of that report, "" if unknown. */
  readonly bootId: string;
}

/** The API server omits `kind` in the items of a list. */
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
  status: z
    .object({
      conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
      addresses: z.array(z.object({ address: z.string() })).nullish(),
      nodeInfo: z
        .object({
          machineID: z.string().default(""),
          systemUUID: z.string().default(""),
          bootID: z.string().default(""),
        })
        .nullish(),
    })
    .nullish(),
});

/** Decodes a Node; `source` names it in the error. Throws ConfigError. */
export function decodeNode(value: unknown, source: string): Node {
  const { metadata, spec, status } = decodeConfig(nodeSchema, value, source);
  const { name, uid = "", labels, annotations } = metadata;
  const { machineID: machineId = "", systemUUID: systemUuid = "", bootID: bootId = "" } = status?.nodeInfo ?? {};
  const ready = status?.conditions?.find(({ type }) => type === "Ready")?.status;
  return {
    kind: "Node",
    name,
    uid,
    labels,
    annotations,
    deleting: isDeleting(metadata),
    taints: (spec?.taints ?? []).map(({ key }) => key),
    ready: ready === "True" || ready === "False" ? ready : "Unknown",
    podCidrs: (spec?.podCIDRs ?? [spec?.podCIDR ?? ""]).filter((text) => text !== ""),
    addresses: (status?.addresses ?? []).map(({ address }) => address),
    machine: machineOf({ systemUuid, machineId }),
    bootId,
  };
}
