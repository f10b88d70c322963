/** A pod that has the gate, or had it until this controller, or the one before, let it through. */
import * as z from "zod";
import { IPS_ANNOTATION } from "../../host/config/annotations.ts";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import { describeObject } from "../../host/kubernetes/object-key.ts";
import { ADDRESS_GATE, decodePod, type Pod, reducePod } from "../../host/resources/pod.ts";

/** Type of the pod's condition that says whether the pools have room. */
export const ADDRESS_CONDITION = "ipam.vendor.io/AddressAvailable";

export interface GatedPod extends Pod {
  readonly uid: string;
  readonly resourceVersion: string;
  /** RFC 3339. */
  readonly created: string;
  readonly hasGate: boolean;
  /** The names of others, which stay. */
  readonly otherGates: readonly string[];
  /** All of them, as received: a write replaces the list. */
  readonly conditions: readonly z.output<typeof condition>[];
  /** Namespace, annotations, and the name if these name addresses by it: pods with the same text want the same. */
  readonly asks: string;
}

const condition = z.looseObject({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
});

const gated = z.object({
  metadata: z.object({ uid: z.string(), resourceVersion: z.string(), creationTimestamp: z.string().catch("") }),
  spec: z.object({ schedulingGates: z.array(z.object({ name: z.string() })).catch([]) }),
  status: z.object({ conditions: z.array(condition).catch([]) }).catch({ conditions: [] }),
});

/** Returns undefined for any other pod, which costs no memory. Throws ConfigError. */
export function decodeGatedPod(object: KubeObject): GatedPod | undefined {
  const { metadata, spec, status } = gated.parse(object);
  const gates = spec.schedulingGates.map(({ name }) => name);
  const hasGate = gates.includes(ADDRESS_GATE);
  const isLetThrough = status.conditions.some(({ type, status }) => type === ADDRESS_CONDITION && status === "True");
  if (!hasGate && !isLetThrough) return undefined;
  const { uid, resourceVersion, creationTimestamp: created } = metadata;
  const pod = decodePod(object, describeObject(object));
  return {
    ...pod,
    ...{ uid, resourceVersion, created, hasGate, conditions: status.conditions },
    asks: JSON.stringify([pod.namespace, pod.annotations, IPS_ANNOTATION in pod.annotations && pod.name]),
    otherGates: gates.filter((name) => name !== ADDRESS_GATE),
  };
}

/** Returns the kept part of a pod for which there is no room: it is let through unseen. */
export function reduceGatedPod(pod: GatedPod): GatedPod {
  const { labels, annotations } = reducePod(pod);
  return { ...pod, labels, annotations, conditions: [], asks: "", isReduced: true };
}

/** Returns whether the pod takes its addresses soon after its gate is gone, as far as it says. */
export function isComing({ otherGates, conditions }: GatedPod): boolean {
  const isUnschedulable = conditions.some(({ type, reason }) => type === "PodScheduled" && reason === "Unschedulable");
  return otherGates.length === 0 && !isUnschedulable;
}
