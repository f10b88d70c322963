/**
 * The static pods of the control plane, as the API server mirrors them: what their programs are started with.
 */
import { z } from "zod";
import type { KubeObject } from "../../../kubernetes/kube-api.ts";
import { decode } from "../../../lib/schema.ts";
import type { ControlPlanePod } from "../sightings.ts";
import { readStatements } from "../statement.ts";
import { findFlag } from "./flags.ts";
import { nameOf } from "./name.ts";

const words = z.array(z.string()).nullish();

const schema = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()).nullish() }),
  spec: z.object({ containers: z.array(z.object({ command: words, args: words })) }),
  status: z.object({ phase: z.string().optional() }).nullish(),
});

/** The label by which kubeadm, and who follows it, marks them. */
export const COMPONENT_LABEL = "component";

export function readControlPlanePod(object: KubeObject): ControlPlanePod {
  const decoded = decode(schema, object);
  if (!decoded.ok) return { component: "", clusterCidr: [], serviceRange: [] };
  const { metadata, spec, status } = decoded.value;
  const isOver = status?.phase === "Succeeded" || status?.phase === "Failed";
  // Where the image has an entry point of its own, the flags are arguments alone.
  const command = spec.containers.flatMap((container) => [...(container.command ?? []), ...(container.args ?? [])]);
  const read = (flag: string) =>
    readStatements(`Pod ${nameOf(object)}, --${flag}`, isOver ? [] : [findFlag(flag, command) ?? ""]);
  return {
    component: metadata.labels?.[COMPONENT_LABEL] ?? "",
    clusterCidr: read("cluster-cidr"),
    serviceRange: read("service-cluster-ip-range"),
  };
}
