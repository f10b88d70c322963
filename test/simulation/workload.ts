/** Workloads of the simulated cluster, and their objects in the API server. */
import type { PodObject } from "./kubelet.ts";
import { IPS } from "./reservations.ts";

/** Subnets from which its pods want generated pools (docs/subnets.md). */
export interface SubnetUse {
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
  /** `ippool-ip-number` */
  number: string;
  readonly reclaim: boolean;
}

export interface Workload {
  readonly name: string;
  /** No controller follows a Thing's kind. The pods of the others but "plain" have a controller. */
  readonly kind: "StatefulSet" | "Deployment" | "Thing" | "plain";
  replicas: number;
  readonly nics: PodObject["nics"];
  /** NICs that the pods announce besides, and that no ADD of Berth ever comes for. */
  readonly announced?: PodObject["nics"];
  annotations?: Readonly<Record<string, string>>;
  /** Names of its pods end as those of a Deployment's do. */
  readonly isGenerated?: boolean;
  /** Its only pod's second NIC has an IPAMClaim, `box-0.net1`. */
  readonly hasClaim?: boolean;
  readonly subnets?: SubnetUse;
  /** A StatefulSet of another project, which `retainByName` of vendor-conf lists. */
  readonly isListed?: boolean;
  /** Counts the sets of this name. */
  life: number;
  /** Counts the templates of a Deployment. */
  version?: number;
  isAbsent: boolean;
}

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** See {@link Workload.isListed}. */
export const LISTED = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };

export function uidOf({ name, life }: Pick<Workload, "name" | "life">): string {
  return `set-${name}-${life}`;
}

export function namesOf({ name, replicas, isAbsent, isGenerated = false }: Workload): string[] {
  const ending = isGenerated ? "-7d9f8-x2x4" : "-";
  return Array.from(
    { length: isAbsent ? 0 : replicas },
    (_, index) => `${name}${ending}${index + (isGenerated ? 4 : 0)}`,
  );
}

/** The controller of its pods; undefined without one. */
export function controllerOf(workload: Workload): Owner | undefined {
  const { name, kind, version = 1, isListed = false } = workload;
  const uid = uidOf(workload);
  if (isListed) return { ...LISTED, name, uid };
  if (kind === "plain") return undefined;
  if (kind === "StatefulSet") return { apiVersion: "apps/v1", kind, name, uid };
  if (kind === "Thing") return { apiVersion: "made.up/v1", kind, name, uid };
  return { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${name}-${version}`, uid: `${uid}-${version}` };
}

/** Returns the annotations of its pods. */
export function annotationsOf({
  annotations = {},
  subnets,
  isListed = false,
}: Workload): Readonly<Record<string, string>> {
  if (isListed) return { ...annotations, "ipam.vendor.io/retain": "by-name" };
  if (subnets === undefined) return annotations;
  const { ipv4, ipv6, number, reclaim } = subnets;
  return {
    ...annotations,
    "ipam.vendor.io/subnet": JSON.stringify({ ipv4, ipv6 }),
    "ipam.vendor.io/ippool-ip-number": number,
    "ipam.vendor.io/ippool-reclaim": String(reclaim),
  };
}

/** Networks of the pods' other NICs, as Multus reads them. */
export function networksOf({
  name: workload = "",
  nics,
  announced = [],
  hasClaim = false,
}: Pick<Workload, "nics" | "announced" | "hasClaim"> & Partial<Pick<Workload, "name">>): Readonly<
  Record<string, string>
> {
  const others = [...nics.slice(1), ...announced].map(([ifName, network]) => ({
    ...{ name: network, interface: ifName },
    ...(hasClaim ? { "ipam-claim-reference": claimName(`${workload}-0`, ifName) } : {}),
  }));
  return others.length === 0 ? {} : { "k8s.v1.cni.cncf.io/networks": JSON.stringify(others) };
}

/** Of an IPAMClaim: no other writer writes its status. */
export const STATUS_OF_BERTH = [
  { manager: "berth-controller", subresource: "status", fieldsV1: { "f:status": { "f:ips": {} } } },
];

/** Returns the name of the claim of a pod's or a virtual machine's NIC. */
export function claimName(of: string, ifName: string): string {
  return `${of}.${ifName}`;
}

function templateOf(workload: Workload): object {
  return { metadata: { annotations: { ...annotationsOf(workload), ...networksOf(workload) } } };
}

export function setObject(workload: Workload): object {
  const { replicas, subnets, annotations } = workload;
  const template = (subnets ?? annotations) === undefined ? {} : { template: templateOf(workload) };
  return { metadata: { uid: uidOf(workload), namespace: "shop" }, spec: { replicas, ...template } };
}

/** Numbers of its pods by the version of their template. */
export type PodsByVersion = ReadonlyMap<number, number>;

export function deploymentObject(workload: Workload, pods: PodsByVersion): object {
  const { replicas, version = 1 } = workload;
  const all = [...pods.values()].reduce((sum, count) => sum + count, 0);
  return {
    metadata: { uid: uidOf(workload), namespace: "shop", generation: version },
    spec: {
      replicas,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0 } },
      template: templateOf(workload),
    },
    status: { observedGeneration: version, replicas: all, updatedReplicas: pods.get(version) ?? 0 },
  };
}

/** By name: one for each version with pods, and the current one, which has the rest of the replicas. */
export function replicaSetObjects(workload: Workload, pods: PodsByVersion): ReadonlyMap<string, object> {
  const { name, replicas, version: current = 1 } = workload;
  const former = [...pods].reduce((sum, [version, count]) => sum + (version === current ? 0 : count), 0);
  const owner = { apiVersion: "apps/v1", kind: "Deployment", name, uid: uidOf(workload), controller: true };
  return new Map(
    [...new Set([...pods.keys(), current])].map((version) => [
      `${name}-${version}`,
      {
        metadata: { uid: `${uidOf(workload)}-${version}`, namespace: "shop", ownerReferences: [owner] },
        spec: {
          replicas: version === current ? Math.max(0, replicas - former) : (pods.get(version) ?? 0),
          template: templateOf(workload),
        },
        status: { replicas: pods.get(version) ?? 0 },
      },
    ]),
  );
}

/**
 * Returns the number of addresses that its pools should have for one NIC and family; undefined: it needs none.
 * `pods`: those that are there to stay.
 */
export function wantedOf({ kind, replicas, isAbsent, subnets }: Workload, pods: number): number | undefined {
  if (subnets === undefined || isAbsent || (kind === "Thing" && pods === 0)) return undefined;
  const { number } = subnets;
  if (!number.startsWith("+")) return Number(number);
  return (kind === "Thing" ? pods : replicas) + Number(number);
}

/** Whether its pools grow by the addresses of ending pods: others come before these have ended. */
export function replacesEnding({ kind, subnets }: Workload): boolean {
  return kind !== "StatefulSet" && subnets?.number.startsWith("+") === true;
}

/** Returns annotations that name addresses of the pools `pin`, other ones with each of the next versions. */
export function pinsOf({ kind, name, replicas, version = 1 }: Workload): Readonly<Record<string, string>> {
  const pinOf = (index: number): object => {
    const number = 1 + index + 4 * (version % 4);
    return { ipv4: `10.6.254.${number}`, ipv6: `fd00::fe${number.toString(16).padStart(2, "0")}` };
  };
  const members = Array.from({ length: replicas }, (_, index) => [`${name}-${index}`, [pinOf(index)]]);
  const ips = kind === "StatefulSet" ? Object.fromEntries(members) : [pinOf(3)];
  return { ...PIN_POOLS, [IPS]: JSON.stringify(ips) };
}

export const PIN_POOLS = { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: ["pin-blue"], ipv6: ["pin-six"] }) };
