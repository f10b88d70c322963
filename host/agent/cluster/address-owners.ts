/**
 * Reads from the API server the owners of the retained addresses of a pod of this node: the machine behind the pod,
 * and the IPAMClaims that the pod's networks refer to. host/ipam/retention.ts finds the owners that the pod itself
 * shows.
 */

import { CniError, ErrorCode } from "../../cni/error.ts";
import type { PodSubject } from "../../ipam/model.ts";
import { claimsOf, decideHolder, type HolderStatus, workloadOfRun } from "../../ipam/retention.ts";
import { ApiUnavailable, callIfThere, type KubeApi, type KubeObject, METADATA } from "../../kubernetes/kube-api.ts";
import { ADDRESS_OWNERS, objectPath, type Resource } from "../../kubernetes/paths.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { OwnerReference } from "../../resources/fields/metadata.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import { listedKind, type Workload } from "../../resources/member.ts";
import type { Pod } from "../../resources/pod.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { decodeIpamClaim } from "../../resources/workloads/ipam-claim.ts";
import { decodeMachine } from "../../resources/workloads/virtual-machine.ts";
import type { NicClaim } from "../ipam/pod-identity.ts";
import { livesOn } from "../ipam/predecessor.ts";
import { POD_READ_PATIENCE_MS } from "../request/add-deadline.ts";
import type { ResourcesState } from "../request/resources.ts";

interface AddressOwnerDeps {
  readonly api: KubeApi;
  readonly resources: { readonly snapshot: Pick<Snapshot, "firstNic"> };
}

const UNREAD = "The owner of the pod's retained addresses cannot be read";

/** Reads the machine that runs in a pod. Rejects with CniError 11 when the API server does not answer in time. */
export async function readMachine(
  api: KubeApi,
  namespace: string,
  run: OwnerReference,
  signal: AbortSignal,
): Promise<Workload | undefined> {
  const path = `/apis/${run.apiVersion}/namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances`;
  const object = await readForPod(api, `${path}/${encodeURIComponent(run.name)}`, UNREAD, signal);
  if (object === undefined) return undefined;
  const { uid, machine } = decodeMachine(object, `VirtualMachineInstance "${namespace}/${run.name}"`);
  return uid === run.uid ? workloadOfRun(namespace, run, machine) : undefined;
}

/**
 * Reads the IPAMClaims of the NICs that are claimed with `ifName`, by interface, with one GET for each. Rejects as
 * {@link readMachine} does.
 */
export async function readClaims(
  { api, resources }: AddressOwnerDeps,
  { namespace, annotations }: PodSubject,
  ifName: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, NicClaim>> {
  const read = async (name: string): Promise<NicClaim> => {
    const path = `/apis/k8s.cni.cncf.io/v1alpha1/namespaces/${encodeURIComponent(namespace)}/ipamclaims`;
    const object = await readForPod(api, `${path}/${encodeURIComponent(name)}`, UNREAD, signal);
    const claim = object === undefined ? undefined : decodeIpamClaim(object, `IPAMClaim "${namespace}/${name}"`);
    return { namespace, name, claim };
  };
  const named = claimsOf(annotations, resources.snapshot.firstNic, ifName);
  return new Map(await Promise.all([...named].map(async ([nic, name]) => [nic, await read(name)] as const)));
}

/** Rejects with CniError 11, which says `failure`, when the API server does not answer in time. */
export async function readForPod(
  api: KubeApi,
  path: string,
  failure: string,
  signal: AbortSignal | undefined,
): Promise<KubeObject | undefined> {
  try {
    return await callIfThere(api, { method: "GET", path, lane: "pod", patienceMs: POD_READ_PATIENCE_MS, signal });
  } catch (error) {
    if (!(error instanceof ApiUnavailable)) throw error;
    throw new CniError(ErrorCode.TryAgainLater, `${failure}: ${error.message}`, { cause: error });
  }
}

/**
 * Reads whether there is an owner with this UID in its namespace: nothing is retained for another one. Rejects when the
 * API server does not answer, or refuses to, and while it is unknown which kinds are listed.
 */
export async function isOwnerThere(
  api: KubeApi,
  owner: Workload,
  { snapshot, complete }: Pick<ResourcesState, "snapshot" | "complete">,
): Promise<boolean> {
  const listed = snapshot.vendorConf.retainByName.find((kind) => listedKind(kind) === owner.kind);
  const resource: Resource | undefined = listed ?? Object(ADDRESS_OWNERS)[owner.kind];
  if (resource === undefined) return complete ? false : Promise.reject(new Error("The settings are not known yet"));
  const path = objectPath(resource, owner);
  const found = await callIfThere(api, { method: "GET", path, accept: METADATA, lane: "background" });
  return (found?.metadata as { readonly uid?: unknown } | undefined)?.uid === owner.uid;
}

/**
 * Takes the address from the member's earlier pod on this node, and off its NIC; returns the row as Cooling. Rejects
 * with CniError 11 when that pod, read by its own namespace and name, is alive, and when its NIC still has the
 * address.
 */
export async function evictPredecessor(
  { registry, isPodGone, endOrphan }: EvictDeps,
  former: Allocation,
  { namespace, pod }: Pick<Allocation, "namespace" | "pod">,
): Promise<Allocation | undefined> {
  const isSameName = former.namespace === namespace && former.pod === pod;
  // The live one of two pods of one name, which makes the request, is the later one. Addresses claimed ahead for the
  // earlier one are on no NIC.
  if (isSameName && former.containerId === "") return registry.collect(former);
  const cooling = await endOrphan(former);
  if (cooling !== undefined) return cooling;
  if (!(await isPodGone(former))) throw livesOn(former);
  return registry.collect(former);
}

interface EvictDeps {
  readonly registry: { collect(row: Allocation): Promise<Allocation | undefined> };
  readonly isPodGone: (row: Allocation) => Promise<boolean>;
  /** Returns the row as Cooling if its pod is gone and its NIC has lost the address. */
  readonly endOrphan: (row: Allocation) => Promise<Allocation | undefined>;
}

/** Returns whether the holder may have the address. `readPod` reads from the API server. */
export async function readHolderStatus(
  readPod: (of: { readonly namespace: string; readonly name: string }) => Promise<Pod | undefined>,
  { namespace, pod: name }: Pick<Allocation, "namespace" | "pod">,
  holder: Holder,
): Promise<HolderStatus> {
  if (namespace === holder.namespace && name === holder.pod) return "gone";
  const [pod, found] = await Promise.all([
    readPod({ namespace, name }),
    readPod({ namespace: holder.namespace, name: holder.pod }),
  ]);
  return pod === undefined ? "alive" : decideHolder({ pod, holder, found });
}
