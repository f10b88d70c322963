/**
 * Objects of the API server as the lab needs them, each built in one place, and the life of a pod without scheduler
 * and kubelet.
 */
import { parseIp } from "../../../host/net/ip.ts";
import { encodeIpAllocation, type IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import type { KubeClient, KubeObject } from "../kube-client.ts";

export const NODES = "/api/v1/nodes";
export const NAMESPACES = "/api/v1/namespaces";
export const BERTH = "/apis/ipam.vendor.io/v1";
export const POOLS = `${BERTH}/ippools`;
export const SUBNETS = `${BERTH}/subnets`;
export const ALLOCATIONS = `${BERTH}/ipallocations`;
export const COORDINATORS = `${BERTH}/coordinators`;
export const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
export const DEFINITIONS_CRD = "network-attachment-definitions.k8s.cni.cncf.io";
/** Namespace of Berth's accounts, agents and settings. */
export const SYSTEM = "kube-system";
export const SETTINGS = `${NAMESPACES}/${SYSTEM}/configmaps/vendor-conf`;
export const OUT_OF_SERVICE = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" };

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** An object of one of Berth's kinds. */
export function berthObject(kind: string, name: string, spec: object, metadata: object = {}): KubeObject {
  return { apiVersion: "ipam.vendor.io/v1", kind, metadata: { ...metadata, name }, spec };
}

export function namespaceObject(name: string, metadata: object = {}): object {
  return { apiVersion: "v1", kind: "Namespace", metadata: { ...metadata, name } };
}

export interface PodSpec {
  readonly name: string;
  /** Default: `shop`. */
  readonly namespace?: string;
  readonly node: string;
  /** A key without a slash gets Berth's prefix; a value that is no text becomes JSON. */
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly owner?: OwnerReference;
  readonly hostNetwork?: boolean;
}

/** A pod that exists. */
export interface LabPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
}

export function podObject({ name, namespace = "shop", node, annotations = {}, ...rest }: PodSpec): KubeObject {
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

/** Made without a node and bound by a Binding; the kubelet's mirror of a static pod is bound when it is made. */
export async function bindPod(client: KubeClient, spec: PodSpec): Promise<LabPod> {
  if (spec.annotations?.["kubernetes.io/config.mirror"] !== undefined) return createPod(client, spec);
  const pod = podObject(spec);
  const { namespace } = pod.metadata;
  const pods = `${NAMESPACES}/${namespace}/pods`;
  const { metadata } = await client.create(pods, { ...pod, spec: { ...pod.spec, nodeName: undefined } });
  const target = { apiVersion: "v1", kind: "Node", name: spec.node };
  const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: spec.name }, target };
  await client.create(`${pods}/${spec.name}/binding`, binding);
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

export function poolObject({ name, ...spec }: PoolSpec): KubeObject {
  return berthObject("IPPool", name, { default: true, ...spec });
}

/** Returns the `spec.generated` of a pool of that workload. */
export function generatedOf(application: OwnerReference & { readonly namespace?: string }, more: object): object {
  return { application: { namespace: "shop", ...application }, interface: "eth0", reclaim: true, ...more };
}

/** `conf.yml` is text in the ConfigMap. */
export function settingsObject(settings: Readonly<Record<string, unknown>>): object {
  const lines = Object.entries(settings).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "vendor-conf" },
    data: { "conf.yml": lines.join("") || "{}" },
  };
}

/** The kind of the network plumbing group, with the fields that Berth reads. */
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

/** A NetworkAttachmentDefinition. */
export async function applyDefinition(client: KubeClient, namespace: string, name: string, config: object) {
  const path = `/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions/${name}`;
  const kind = { apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition" };
  await client.apply(path, { ...kind, metadata: { name, namespace }, spec: { config: JSON.stringify(config) } });
}

export interface BoundSpec {
  readonly address: string;
  readonly node: string;
  readonly pod?: string;
  readonly podUID?: string;
  /** Over the rest of the spec. */
  readonly [field: string]: unknown;
}

/** An IPAllocation that a pod has, in the words of the API; anything may be wrong with it. */
export function boundObject({ address, node, pod = "web-0", podUID = "u1", ...rest }: BoundSpec): KubeObject {
  const holder = { namespace: "shop", pod, podUID, interface: "eth0", node };
  const base = { address, prefixLength: 24, pool: "blue", state: "Bound", node, holders: [holder] };
  return berthObject("IPAllocation", address, { ...base, ...rest });
}

/** Returns the specification that an agent writes. Default: Bound to a pod of node n1, of pool blue. */
export function allocationSpec(address: string, changes: Partial<IpAllocationSpec> = {}): IpAllocationSpec {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(`"${address}" is not an address`);
  const { node = "n1", state = "Bound" } = changes;
  const holder = { namespace: "shop", pod: "web-0", podUid: "u-1", ifName: "eth0", node };
  const holders = state === "Bound" ? [holder] : [];
  return { ip, addressSpace: "", prefixLength: 24, pool: "blue", state, node, holders, ...changes };
}

/** With the name and the labels that an agent writes. */
export function allocationObject(spec: IpAllocationSpec, metadata: object = {}): object {
  return encodeIpAllocation(spec, metadata);
}

/** Settings of a workload's template beside its label. */
export interface TemplateOptions {
  /** IPv4 Subnet of annotation `subnet`. */
  readonly subnet?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly restartPolicy?: string;
}

/** The template of a workload's pods. */
export function podTemplate(app: string, { subnet, annotations = {}, restartPolicy = "Always" }: TemplateOptions = {}) {
  const named = subnet === undefined ? {} : { "ipam.vendor.io/subnet": JSON.stringify({ ipv4: [subnet] }) };
  return {
    metadata: { labels: { app }, annotations: { ...named, ...annotations } },
    spec: { restartPolicy, containers: [{ name: "main", image: "local/pause:1" }] },
  };
}

export interface WorkloadOptions extends TemplateOptions {
  readonly replicas?: number;
  readonly owner?: OwnerReference;
  /** Over the rest of the spec. */
  readonly more?: object;
  /** Default: shop. */
  readonly namespace?: string;
}

/** A Deployment, ReplicaSet, StatefulSet or DaemonSet, and a reference to it. */
export async function createWorkload(
  client: KubeClient,
  kind: "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet",
  name: string,
  { replicas, owner, more = {}, namespace = "shop", ...template }: WorkloadOptions = {},
): Promise<OwnerReference & { readonly namespace: string }> {
  const set = kind === "StatefulSet" ? { serviceName: name } : {};
  const spec = { replicas, selector: { matchLabels: { app: name } }, template: podTemplate(name, template) };
  const path = `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`;
  const made = await createOwned(
    client,
    path,
    { apiVersion: "apps/v1", kind },
    name,
    { ...spec, ...set, ...more },
    owner,
  );
  return { ...made, namespace };
}

/** An object of any kind with its controlling owner, and a reference to it. */
export async function createOwned(
  client: KubeClient,
  path: string,
  kind: Pick<OwnerReference, "apiVersion" | "kind">,
  name: string,
  spec: object,
  owner?: OwnerReference,
): Promise<OwnerReference> {
  const ownerReferences = owner === undefined ? [] : [{ ...owner, controller: true }];
  const { metadata } = await client.create(path, { ...kind, metadata: { name, ownerReferences }, spec });
  return { ...kind, name, uid: String(metadata.uid) };
}
