/**
 * The address owner of a pod (retention, docs/workloads.md).
 *
 *   pod's controller                     address owner                         member
 *   StatefulSet of apps/v1               the set                               the pod's name
 *   VirtualMachineInstance, launcher     the VirtualMachine that runs it,      the machine's name
 *                                        without one the instance itself
 *   a kind that vendor-conf lists, of    that object                           the pod's name
 *   a pod with retain: by-name
 *   any other, or none                   none
 *   whatever it is, of a NIC whose       that claim                            the claim's name
 *   network selection names an IPAMClaim
 */

import type { RequestedIp } from "../cni/request.ts";
import { type PodAnnotations, RETAIN_ANNOTATION } from "../config/annotations.ts";
import { ConfigError } from "../config/config-error.ts";
import type { VendorConf } from "../config/vendor-conf.ts";
import { bitsOf, type Family } from "../net/ip.ts";
import type { OwnerReference } from "../resources/fields/metadata.ts";
import type { Holder } from "../resources/ip-allocation.ts";
import { hasNamedPods, listedKind, type Workload } from "../resources/member.ts";
import { LAUNCHER_LABEL, MIGRATION_LABEL, type Pod } from "../resources/pod.ts";
import type { IpamClaim } from "../resources/workloads/ipam-claim.ts";
import { isKubevirt } from "../resources/workloads/virtual-machine.ts";
import { announcedNics, demandedNics } from "./announced-nics.ts";

type RetentionSettings = Pick<VendorConf, "enableStatefulSet" | "enableKubevirt" | "retainByName">;

type AddressOwner =
  | { readonly kind: "workload"; readonly workload: Workload }
  /** One run of a machine. The VirtualMachineInstance names the address owner. */
  | { readonly kind: "run"; readonly run: OwnerReference };

/** Returns undefined if nothing keeps the pod's addresses. */
export function findAddressOwner(pod: Pod, settings: RetentionSettings): AddressOwner | undefined {
  const { enableStatefulSet, enableKubevirt, retainByName } = settings;
  const { controller, namespace, name: member } = pod;
  if (controller === undefined) return undefined;
  const isSet = isStatefulSet(controller);
  const asksByName = pod.annotations[RETAIN_ANNOTATION] === "by-name";
  if (isSet ? enableStatefulSet : asksByName && isListed(controller, retainByName)) {
    const { name, uid } = controller;
    const kind = isSet ? controller.kind : listedKind(controller);
    return { kind: "workload", workload: { kind, namespace, name, uid, member } };
  }
  return enableKubevirt && runOf(pod) !== undefined ? { kind: "run", run: controller } : undefined;
}

function isStatefulSet({ kind, apiVersion }: OwnerReference): boolean {
  return kind === "StatefulSet" && apiVersion === "apps/v1";
}

function isListed(owner: OwnerReference, retainByName: RetentionSettings["retainByName"]): boolean {
  return retainByName.some((listed) => listedKind(listed) === listedKind(owner));
}

/** Controllers that generate the names of their pods, and replacements for retention. */
const GENERATED_NAMES: Readonly<Record<string, string>> = {
  "ReplicaSet.apps": 'for a Deployment, name a Subnet with "ipam.vendor.io/ippool-ip-number": "N"',
  "DaemonSet.apps": "use a pool for the node (nodeName)",
  "Job.batch": "use an IPAMClaim",
  "ReplicationController.v1": "use a StatefulSet",
  "CloneSet.apps.kruise.io": "use a StatefulSet",
};

/** Returns why a pod that asks for it cannot retain its addresses by its name; undefined if it can. */
export function refuseRetention(pod: Pod, { retainByName }: RetentionSettings): ConfigError | undefined {
  const { controller: owner } = pod;
  const refuse = (why: string) =>
    new ConfigError(`annotation "${RETAIN_ANNOTATION}"`, [{ path: "", got: "by-name", wanted: "another way" }], why);
  if (owner === undefined) return refuse("the pod has no controller, with whose end its addresses would be released");
  if (isStatefulSet(owner) || runOf(pod) !== undefined || isListed(owner, retainByName)) return undefined;
  const kind = listedKind(owner);
  const remedy = Object.hasOwn(GENERATED_NAMES, kind) ? GENERATED_NAMES[kind] : undefined;
  const whose = `${owner.kind} ${pod.namespace}/${owner.name}`;
  if (remedy !== undefined)
    return refuse(`the pods of ${whose} have generated names, which never come again; ${remedy}`);
  return refuse(
    `"retainByName" of vendor-conf does not list ${owner.kind} of ${owner.apiVersion}, the kind of ${whose}`,
  );
}

/** Returns the VirtualMachineInstance that runs in the pod; undefined if there is none. */
function runOf({ controller, labels }: Pod): OwnerReference | undefined {
  const isRun = controller?.kind === "VirtualMachineInstance" && isKubevirt(controller.apiVersion);
  return isRun && labels[LAUNCHER_LABEL] === "virt-launcher" ? controller : undefined;
}

/** Returns whether a virtual machine that runs in another pod migrates, or has migrated, to this one. */
export function isMigrationTarget(pod: Pod): boolean {
  return pod.labels[MIGRATION_LABEL] !== undefined && runOf(pod) !== undefined;
}

/** Returns the address owner of a run. `machine`: its VirtualMachine, if there is one. */
export function workloadOfRun(namespace: string, run: OwnerReference, machine: OwnerReference | undefined): Workload {
  const { name, uid, kind } = machine ?? run;
  return { kind, namespace, name, uid, member: name };
}

export function workloadOfClaim({ namespace, name, uid }: IpamClaim): Workload {
  return { kind: "IPAMClaim", namespace, name, uid, member: name };
}

/**
 * Returns the names of the IPAMClaims to which the pod's NICs refer, by interface, for the NICs whose addresses a
 * request for `ifName` claims.
 */
export function claimsOf(annotations: PodAnnotations, firstNic: string, ifName: string): ReadonlyMap<string, string> {
  const { defaultNetwork, networks = [] } = annotations;
  const claims = [defaultNetwork?.claim, ...networks.map(({ claim }) => claim)];
  const byNic = new Map(announcedNics(annotations, firstNic).map((nic, index) => [nic, claims[index]] as const));
  const demanded = demandedNics(ifName, annotations, firstNic).map((nic) => [nic, byNic.get(nic)] as const);
  return new Map(demanded.flatMap(([nic, claim]) => (claim === undefined ? [] : [[nic, claim] as const])));
}

/**
 * Returns the claim's assigned addresses of each family, else the requested ones; empty if any address will do. An
 * address that only the controller reported is a preference: the ADD that got it may have been undone since.
 */
export function requestedByClaim({ namespace, name, given, requested, isGivenByBerth }: IpamClaim): RequestedIp[] {
  const has = (ips: IpamClaim["given"], family: Family): boolean => ips.some(({ ip }) => ip.family === family);
  const missing = requested.filter(({ ip }) => !has(given, ip.family));
  const from = (field: string, ips: IpamClaim["given"]): RequestedIp[] =>
    ips.map(({ ip, length }) => ({
      ip,
      // The address alone, as a prefix of its own length.
      length: length === bitsOf(ip.family) ? undefined : length,
      source: `IPAMClaim "${namespace}/${name}", ${field}`,
    }));
  const reported = from("status.ips", given).map((request) => ({
    ...request,
    isPreference: isGivenByBerth && !has(requested, request.ip.family),
  }));
  return [...reported, ...from("spec.ipRequests", missing)];
}

/** Returns why the claim cannot serve the NIC; undefined if it can. */
export function refuseClaim(
  { network, ifName: claimed }: IpamClaim,
  ifName: string,
  networkNames: readonly string[],
): string | undefined {
  if (claimed !== "" && claimed !== ifName) return `it is for interface "${claimed}", not for "${ifName}"`;
  if (networkNames.includes(network)) return undefined;
  return `it is for network "${network}", and interface "${ifName}" is of network "${networkNames[0]}"`;
}

/** Returns whether two pods of one member may share its address: only for a machine, which may migrate. */
export function mayBeShared(workload: Workload | undefined): boolean {
  return workload !== undefined && !hasNamedPods(workload.kind);
}

/** State of another pod that has the member's address, according to the API server. */
export type HolderStatus =
  /** It has ended, or the requesting pod is its successor. */
  | "gone"
  /** It runs the same machine, which migrates to or from the requesting pod. */
  | "migrating"
  | "alive";

/** The node of a pod that has ended, or been deleted, and may still run there. */
export type NodeStatus =
  /** Its agent runs and releases the address. */
  | "there"
  /** Absent or not ready: the pod may still run there, unobserved (node-lost). */
  | "lost"
  /** An administrator has confirmed by the out-of-service taint that the machine is off. */
  | "off";

interface HolderQuestion {
  /** The requesting pod. */
  readonly pod: Pod;
  readonly holder: Pick<Holder, "namespace" | "pod" | "podUid">;
  /** The pod of the holder's name; undefined if there is none. */
  readonly found: Pod | undefined;
}

export function decideHolder({ pod, holder, found }: HolderQuestion): HolderStatus {
  // The live one of two pods of one name is the later one.
  if (pod.namespace === holder.namespace && pod.name === holder.pod) return "gone";
  if (found === undefined || found.uid !== holder.podUid || found.isFinished) return "gone";
  const [own, other] = [runOf(pod), runOf(found)];
  return own !== undefined && own.uid === other?.uid ? "migrating" : "alive";
}
