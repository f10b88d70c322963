/** The collections of the simulated API server, by their paths. */
import type { Served } from "../fakes/memory-api-server.ts";
import { LISTED } from "./workload.ts";

/** A hostile tenant's namespace. */
export const TENANT = "evil";
export const PODS = "/api/v1/namespaces/shop/pods";
export const NODES = "/api/v1/nodes";
export const SETS = "/apis/apps/v1/namespaces/shop/statefulsets";
export const SERVICES = "/api/v1/namespaces/shop/services";
export const LISTED_SETS = `/apis/${LISTED.apiVersion}/namespaces/shop/statefulsets`;
export const DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments";
export const REPLICA_SETS = "/apis/apps/v1/namespaces/shop/replicasets";
export const POOLS = "/apis/ipam.vendor.io/v1/ippools";
export const SUBNETS = "/apis/ipam.vendor.io/v1/subnets";
export const RESERVED = "/apis/ipam.vendor.io/v1/reservedips";
export const COORDINATORS = "/apis/ipam.vendor.io/v1/coordinators";
export const CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps";
export const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
export const DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions";
export const CUSTOM_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** The namespaces with pods. */
export const NAMESPACES = ["shop", TENANT] as const;
export const CLAIMS = "/apis/k8s.cni.cncf.io/v1alpha1/namespaces/shop/ipamclaims";
export const MACHINES = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines";
export const INSTANCES = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances";

function berth(kind: string) {
  return { apiVersion: "ipam.vendor.io/v1", kind };
}

export function inNamespace(path: string, namespace: string): string {
  return path.replace("/namespaces/shop/", `/namespaces/${namespace}/`);
}

/** Collections of each namespace. */
function serveAll(kinds: Readonly<Record<string, { readonly apiVersion: string; readonly kind: string }>>): Served {
  return Object.fromEntries(
    Object.entries(kinds).flatMap(([path, kind]) =>
      NAMESPACES.map((each) => [inNamespace(path, each), { ...kind, everywhere: everywhere(path) }]),
    ),
  );
}

function everywhere(path: string): string {
  return path.replace(/\/namespaces\/[^/]+/, "");
}

export const SERVES: Served = {
  [POOLS]: berth("IPPool"),
  [SUBNETS]: berth("Subnet"),
  [RESERVED]: berth("ReservedIP"),
  [COORDINATORS]: berth("Coordinator"),
  "/apis/ipam.vendor.io/v1/ippoolusages": berth("IPPoolUsage"),
  "/api/v1/namespaces": { apiVersion: "v1", kind: "Namespace" },
  [NODES]: { apiVersion: "v1", kind: "Node" },
  [CONFIG_MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
  [CUSTOM_KINDS]: { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" },
  ...serveAll({
    [PODS]: { apiVersion: "v1", kind: "Pod" },
    [SETS]: { apiVersion: "apps/v1", kind: "StatefulSet" },
    [LISTED_SETS]: LISTED,
    [DEPLOYMENTS]: { apiVersion: "apps/v1", kind: "Deployment" },
    [REPLICA_SETS]: { apiVersion: "apps/v1", kind: "ReplicaSet" },
    [DEFINITIONS]: { apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition" },
    [CLAIMS]: { apiVersion: "k8s.cni.cncf.io/v1alpha1", kind: "IPAMClaim" },
    [MACHINES]: { apiVersion: "kubevirt.io/v1", kind: "VirtualMachine" },
    [INSTANCES]: { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance" },
  }),
  [SERVICES]: { apiVersion: "v1", kind: "Service", everywhere: everywhere(SERVICES) },
  [LEASES]: {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
  },
};
