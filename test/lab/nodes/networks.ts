/**
 * The networks of real nodes, as files of containerd's CNI folder and as NetworkAttachmentDefinitions.
 *
 *   berth        macvlan on the node's eth0, addresses by Berth, and the coordinator
 *   detecting    the same, and every address is asked for before it is used
 *   multus       the first by way of Multus, so that pods may have more NICs
 *   current      the first in CNI 1.1, in which a runtime may call STATUS and GC
 *   collected    the first in the oldest widespread format, with the service networks that the controller collects
 *   bare         macvlan with Berth and nothing else: the base of comparison
 *   own          a network of each node's own, by ptp and host-local
 *   overlay      the same by way of Multus: a cluster before Berth is added
 *   host-local   macvlan with a range for each node by the reference plugin
 */
import type { KubeObject } from "../kube-client.ts";

export const NETWORKS = [
  "berth",
  "detecting",
  "multus",
  "current",
  "collected",
  "bare",
  "overlay",
  "own",
  "host-local",
] as const;
export type NetworkName = (typeof NETWORKS)[number];

/** The switch that all nodes and pods are plugged into. */
export const LAN = { subnet: "10.99.0.0/16", gateway: "10.99.0.1", lengthBits: 16 } as const;
/** Ranges of Berth and, by the node's number, of host-local: apart, so that one can follow the other. */
export const BERTH_RANGE = "10.99.16.1-10.99.31.254";
const hostLocalRange = (number: number) => ({
  rangeStart: `10.99.${100 + number}.1`,
  rangeEnd: `10.99.${100 + number}.250`,
});

const SERVICE_CIDR = "10.96.0.0/16";

export interface NetworkPlace {
  /** 1 for the first node. */
  readonly number: number;
  readonly binDir: string;
  /** Kubeconfig with the rights of Multus at the API server. */
  readonly multusKubeconfig: string;
}

const CNI_VERSIONS: Readonly<Partial<Record<NetworkName, string>>> = { collected: "0.3.1", current: "1.1.0" };

/** The one configuration list of a node. */
export function networkList(name: NetworkName, place: NetworkPlace): object {
  if (name === "multus") return multusList(place, "berth");
  if (name === "overlay") return multusList(place, "own");
  const cniVersion = CNI_VERSIONS[name] ?? "1.0.0";
  return { cniVersion, name: `lan-${name}`, plugins: pluginsOf(name, place) };
}

function pluginsOf(name: Exclude<NetworkName, "multus" | "overlay">, { number }: NetworkPlace): object[] {
  if (name === "host-local") {
    const ranges = [[{ subnet: LAN.subnet, ...hostLocalRange(number), gateway: LAN.gateway }]];
    return [macvlan({ type: "host-local", ranges, routes: [{ dst: "0.0.0.0/0" }] })];
  }
  if (name === "own") return [{ type: "ptp", ipam: { type: "host-local", subnet: `10.245.${number}.0/24` } }];
  const berth = macvlan({ type: "berth" });
  if (name === "bare") return [berth];
  if (name === "collected") return [berth, { type: "coordinator" }];
  const coordinator = { type: "coordinator", serviceCIDR: [SERVICE_CIDR] };
  return [berth, name === "detecting" ? { ...coordinator, detectIPConflict: true } : coordinator];
}

function macvlan(ipam: object): object {
  return { type: "macvlan", master: "eth0", mode: "bridge", ipam };
}

function multusList(place: NetworkPlace, network: NetworkName): object {
  const { binDir, multusKubeconfig } = place;
  const delegates = [networkList(network, place)];
  const multus = {
    type: "multus",
    kubeconfig: multusKubeconfig,
    binDir,
    cniDir: "/var/lib/cni/multus",
    logLevel: "error",
  };
  return { cniVersion: "0.4.0", name: "multus", plugins: [{ ...multus, delegates }] };
}

/** A second network: macvlan on the same wire, with addresses from that pool. */
export function secondNetwork(namespace: string, name: string, pool: string): KubeObject {
  const config = {
    cniVersion: "1.0.0",
    name,
    plugins: [
      macvlan({ type: "berth", default_ipv4_ippool: [pool] }),
      { type: "coordinator", serviceCIDR: [SERVICE_CIDR] },
    ],
  };
  return {
    apiVersion: "k8s.cni.cncf.io/v1",
    kind: "NetworkAttachmentDefinition",
    metadata: { namespace, name },
    spec: { config: JSON.stringify(config) },
  };
}

/** Returns the rights of the thin Multus: to pods and definitions, and to write the networks' state into the pod. */
export function multusRights(): KubeObject[] {
  const metadata = { name: "multus", namespace: "kube-system" };
  const group = "rbac.authorization.k8s.io";
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: `${group}/v1`,
      kind: "ClusterRole",
      metadata: { name: "multus" },
      rules: [
        { apiGroups: ["k8s.cni.cncf.io"], resources: ["*"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch", "update"] },
        { apiGroups: [""], resources: ["pods/status"], verbs: ["update", "patch"] },
        { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
      ],
    },
    {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "multus" },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: "multus" },
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    },
  ];
}
