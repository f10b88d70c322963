/** Nodes, pods and pools as objects, and what becomes of a pod without scheduler and kubelet: it is bound when it is made, runs when told so. */
import type { KubeClient, KubeObject } from "../kube-client.ts";

export const NODES = "/api/v1/nodes";
export const NAMESPACES = "/api/v1/namespaces";
export const POOLS = "/apis/ipam.vendor.io/v1/ippools";
export const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
export const DEFINITIONS_CRD = "network-attachment-definitions.k8s.cni.cncf.io";

export interface PodSpec {
  readonly name: string;
  /** Default: `shop`. */
  readonly namespace?: string;
  readonly node: string;
  /** A key without a slash gets Berth's prefix; a value that is no text becomes JSON. */
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly owner?: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string };
  readonly hostNetwork?: boolean;
}

/** A pod that exists. */
export interface LabPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
}

export function podObject({ name, namespace = "shop", node, annotations = {}, ...rest }: PodSpec): object {
  const { labels = {}, owner, hostNetwork = false } = rest;
  const texts = Object.entries(annotations).map(([key, value]) => [
    key.includes("/") ? key : `ipam.vendor.io/${key}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const ownerReferences = owner === undefined ? [] : [{ ...owner, controller: true }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels, annotations: Object.fromEntries(texts), ownerReferences },
    spec: { nodeName: node, hostNetwork, containers: [{ name: "main", image: "local/pause:1" }] },
  };
}

export const podPath = ({ namespace, name }: Pick<LabPod, "namespace" | "name">): string =>
  `${NAMESPACES}/${namespace}/pods/${name}`;

/** The pod is bound from the start: so does a scheduler leave it. */
export async function createPod(client: KubeClient, spec: PodSpec): Promise<LabPod> {
  const namespace = spec.namespace ?? "shop";
  const { metadata } = await client.create(`${NAMESPACES}/${namespace}/pods`, podObject(spec));
  return { namespace, name: spec.name, uid: metadata.uid, node: spec.node };
}

/** As the kubelet reports a pod that runs. */
export function setRunning(client: KubeClient, pod: LabPod, ips: readonly string[]): Promise<KubeObject> {
  const conditions = [{ type: "PodReadyToStartContainers", status: "True" }];
  const podIPs = ips.map((ip) => ({ ip }));
  const status = { phase: "Running", conditions, ...(ips.length === 0 ? {} : { podIP: ips[0], podIPs }) };
  return client.patch(`${podPath(pod)}/status`, { status });
}

/** It ran and will not run again. */
export function finishPod(client: KubeClient, pod: LabPod, phase: "Succeeded" | "Failed" = "Succeeded") {
  return client.patch(`${podPath(pod)}/status`, { status: { phase } });
}

/** Gone at once: there is no kubelet to wait for. Only that very pod. */
export function deletePod(client: KubeClient, pod: LabPod): Promise<KubeObject> {
  return client.delete(podPath(pod), { gracePeriodSeconds: 0, preconditions: { uid: pod.uid } });
}

export function nodeObject(name: string, labels: Readonly<Record<string, string>> = {}): object {
  return { apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels } } };
}

export interface PoolSpec {
  readonly name: string;
  /** `10.6.0.0/24` */
  readonly subnet: string;
  /** Default: the whole subnet. */
  readonly ips?: readonly string[];
  /** Default: true, so that pods need no annotation. */
  readonly default?: boolean;
  readonly [field: string]: unknown;
}

export function poolObject({ name, ...spec }: PoolSpec): object {
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { default: true, ...spec } };
}

/** `conf.yml` is text in the ConfigMap. */
export function settingsObject(settings: Readonly<Record<string, unknown>>): object {
  const lines = Object.entries(settings).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "vendor-conf" },
    data: { "conf.yml": lines.join("") },
  };
}

/** The kind of the network plumbing group, as far as anybody reads it here. */
export function definitionsCrd(): object {
  const config = { type: "object", properties: { config: { type: "string" } } };
  const openAPIV3Schema = { type: "object", properties: { spec: config } };
  const plural = "network-attachment-definitions";
  const names = { plural, singular: "network-attachment-definition", kind: "NetworkAttachmentDefinition" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: DEFINITIONS_CRD },
    spec: {
      group: "k8s.cni.cncf.io",
      scope: "Namespaced",
      names: { ...names, shortNames: ["net-attach-def"] },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
}
