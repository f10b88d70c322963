/**
 * Paths of the API server. Namespaces and names are encoded here and nowhere else. Berth's own resources are in
 * resources/collections.ts.
 */

export interface Resource {
  /** `v1`, `apps/v1` */
  readonly apiVersion: string;
  /** `pods` */
  readonly plural: string;
}

export const CONFIG_MAPS: Resource = { apiVersion: "v1", plural: "configmaps" };
export const ENDPOINT_SLICES: Resource = { apiVersion: "discovery.k8s.io/v1", plural: "endpointslices" };
export const EVENTS: Resource = { apiVersion: "events.k8s.io/v1", plural: "events" };
export const IPAM_CLAIMS: Resource = { apiVersion: "k8s.cni.cncf.io/v1alpha1", plural: "ipamclaims" };
export const LEASES: Resource = { apiVersion: "coordination.k8s.io/v1", plural: "leases" };
export const NAMESPACES: Resource = { apiVersion: "v1", plural: "namespaces" };
export const NETWORK_DEFINITIONS: Resource = {
  apiVersion: "k8s.cni.cncf.io/v1",
  plural: "network-attachment-definitions",
};
export const NODES: Resource = { apiVersion: "v1", plural: "nodes" };
/** The kinds of address owners (docs/workloads.md). */
export const ADDRESS_OWNERS = {
  StatefulSet: { apiVersion: "apps/v1", plural: "statefulsets" },
  VirtualMachine: { apiVersion: "kubevirt.io/v1", plural: "virtualmachines" },
  VirtualMachineInstance: { apiVersion: "kubevirt.io/v1", plural: "virtualmachineinstances" },
  IPAMClaim: IPAM_CLAIMS,
} as const satisfies Readonly<Record<string, Resource>>;
export const PODS: Resource = { apiVersion: "v1", plural: "pods" };
export const SECRETS: Resource = { apiVersion: "v1", plural: "secrets" };
export const SERVICES: Resource = { apiVersion: "v1", plural: "services" };

/** Returns `/api/v1/pods`; with a namespace, `/api/v1/namespaces/shop/pods`. */
export function collectionPath({ apiVersion, plural }: Resource, namespace?: string): string {
  const root = apiVersion.includes("/") ? "/apis" : "/api";
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}/${apiVersion}${scope}/${plural}`;
}

export interface ObjectName {
  /** undefined for an object that has none. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Returns the path of one object: `/apis/ipam.vendor.io/v1/ippools/blue`. */
export function objectPath(resource: Resource, { namespace, name }: ObjectName): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

/** Returns the path of an object's status subresource. */
export function statusPath(resource: Resource, name: ObjectName): string {
  return `${objectPath(resource, name)}/status`;
}
