/**
 * Kinds of other projects, as plain as Berth needs them: those that keep addresses, KubeVirt's machines and the
 * IPAMClaim. No controller is behind them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, KubeError, type KubeObject } from "../kube-client.ts";

export const MACHINES = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines";
export const INSTANCES = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances";
export const CLAIMS = "/apis/k8s.cni.cncf.io/v1alpha1/namespaces/shop/ipamclaims";
export const SETS = "/apis/apps/v1/namespaces/shop/statefulsets";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVED_MS = 20_000;

/** A kind without a schema. */
export interface ForeignKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  /** Default: Namespaced. */
  readonly scope?: "Cluster" | "Namespaced";
}

const KINDS: readonly ForeignKind[] = [
  { group: "kubevirt.io", version: "v1", kind: "VirtualMachine", plural: "virtualmachines" },
  { group: "kubevirt.io", version: "v1", kind: "VirtualMachineInstance", plural: "virtualmachineinstances" },
  { group: "k8s.cni.cncf.io", version: "v1alpha1", kind: "IPAMClaim", plural: "ipamclaims" },
];

function crdOf({ group, version, kind, plural, scope = "Namespaced" }: ForeignKind): KubeObject {
  const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec: anything, status: anything } } };
  return {
    ...{ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" },
    metadata: { name: `${plural}.${group}` },
    spec: {
      ...{ group, scope, names: { plural, singular: kind.toLowerCase(), kind } },
      versions: [{ name: version, served: true, storage: true, subresources: { status: {} }, schema }],
    },
  };
}

/** Kinds that keep addresses. Resolves when all are served. */
export function applyWorkloadKinds(client: KubeClient): Promise<void> {
  return applyKinds(client, KINDS);
}

/** Resolves when all are served. */
export async function applyKinds(client: KubeClient, kinds: readonly ForeignKind[]): Promise<void> {
  for (const kind of kinds) await client.apply(`${CRDS}/${kind.plural}.${kind.group}`, crdOf(kind));
  const deadline = performance.now() + SERVED_MS;
  for (const { group, version, plural } of kinds) {
    while (!(await isServed(client, `/apis/${group}/${version}/${plural}?limit=1`))) {
      if (performance.now() > deadline) throw new Error(`${plural} are not served after ${SERVED_MS} ms`);
      await sleep(20);
    }
  }
}

async function isServed(client: KubeClient, path: string): Promise<boolean> {
  try {
    await client.get(path);
    return true;
  } catch (error) {
    if (error instanceof KubeError && (error.status === 404 || error.status === 503)) return false;
    throw error;
  }
}

export function statefulSet(name: string, replicas: number, start?: number): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "local/pause:1" }] } };
  const ordinals = start === undefined ? {} : { ordinals: { start } };
  const spec = { serviceName: name, replicas, selector: { matchLabels: labels }, template, ...ordinals };
  return { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name }, spec };
}

export function machine(name: string): object {
  return { apiVersion: "kubevirt.io/v1", kind: "VirtualMachine", metadata: { name }, spec: { runStrategy: "Always" } };
}

/** A run of the machine; of none when there is no machine. */
export function instance(name: string, machineUid?: string): KubeObject {
  const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachine", name, uid: machineUid, controller: true };
  const ownerReferences = machineUid === undefined ? [] : [owner];
  return {
    apiVersion: "kubevirt.io/v1",
    kind: "VirtualMachineInstance",
    metadata: { name, ownerReferences },
    spec: {},
  };
}

export interface ClaimSpec {
  readonly network: string;
  readonly interface: string;
  readonly ipRequests?: readonly string[];
}

export function ipamClaim(name: string, spec: ClaimSpec): object {
  return { apiVersion: "k8s.cni.cncf.io/v1alpha1", kind: "IPAMClaim", metadata: { name }, spec };
}
