/**
 * What keeps the addresses of a pod of this node, as the API server says it now: the machine behind a run of it, and the IPAMClaims that the pod's
 * networks refer to. What can be told from the pod alone is in host/ipam/retention.ts.
 * Effects: calls of the API server, for such pods only.
 */

import { CniError, ErrorCode } from "../../cni/error.ts";
import type { PodAnnotations } from "../../config/annotations.ts";
import { claimsOf, decideHolder, findAddressOwner, type HolderStatus, workloadOfRun } from "../../ipam/retention.ts";
import { ApiUnavailable, isNotFound, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Holder, Workload } from "../../resources/ip-allocation.ts";
import type { Pod } from "../../resources/pod.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { decodeIpamClaim } from "../../resources/workloads/ipam-claim.ts";
import { decodeMachine } from "../../resources/workloads/virtual-machine.ts";
import { POD_READ_PATIENCE_MS } from "../add-deadline.ts";
import type { NicClaim } from "../ipam/pod-identity.ts";
import { livesOn } from "../ipam/predecessor.ts";

import { firstNicOf } from "../ipam/subject.ts";

interface AddressOwners {
  readonly workload: Workload | undefined;
  readonly claims: ReadonlyMap<string, NicClaim> | undefined;
}

interface AddressOwnerDeps {
  readonly api: KubeApi;
  readonly snapshot: () => Pick<Snapshot, "vendorConf" | "coordinator">;
}

interface AddressOwnerQuery {
  readonly pod: Pod;
  readonly annotations: PodAnnotations;
  /** The NIC whose addresses are wanted, with those of the NICs that are claimed with it. Absent: no NIC's, and no claim is read. */
  readonly ifName: string | undefined;
}

/** Throws CniError 11 when the API server does not tell in time. */
export async function findAddressOwners(
  tools: AddressOwnerDeps,
  { pod, annotations, ifName }: AddressOwnerQuery,
  signal: AbortSignal,
): Promise<AddressOwners> {
  const named =
    ifName === undefined ? new Map<string, string>() : claimsOf(annotations, firstNicOf(tools.snapshot()), ifName);
  const [workload, claims] = await Promise.all([
    findWorkload(tools, pod, signal),
    readClaims(tools, pod.namespace, named, signal),
  ]);
  return { workload, claims };
}

async function findWorkload({ api, snapshot }: AddressOwnerDeps, pod: Pod, signal: AbortSignal) {
  const keeper = findAddressOwner(pod, snapshot().vendorConf);
  if (keeper.kind !== "run") return keeper.kind === "workload" ? keeper.workload : undefined;
  const { namespace } = pod;
  const { run } = keeper;
  const path = `/apis/${run.apiVersion}/namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances`;
  const object = await readKeeper(api, `${path}/${encodeURIComponent(run.name)}`, signal);
  if (object === undefined) return undefined;
  const { uid, machine } = decodeMachine(object, `VirtualMachineInstance "${namespace}/${run.name}"`);
  return uid === run.uid ? workloadOfRun(namespace, run, machine) : undefined;
}

/** One GET for each name. */
async function readClaims(
  { api }: AddressOwnerDeps,
  namespace: string,
  named: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, NicClaim> | undefined> {
  if (named.size === 0) return undefined;
  const read = async (name: string): Promise<NicClaim> => {
    const path = `/apis/k8s.cni.cncf.io/v1alpha1/namespaces/${encodeURIComponent(namespace)}/ipamclaims`;
    const object = await readKeeper(api, `${path}/${encodeURIComponent(name)}`, signal);
    const claim = object === undefined ? undefined : decodeIpamClaim(object, `IPAMClaim "${namespace}/${name}"`);
    return { namespace, name, claim };
  };
  return new Map(await Promise.all([...named].map(async ([ifName, name]) => [ifName, await read(name)] as const)));
}

async function readKeeper(api: KubeApi, path: string, signal: AbortSignal): Promise<KubeObject | undefined> {
  try {
    return await api.call({ method: "GET", path, lane: "pod", patienceMs: POD_READ_PATIENCE_MS, signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (!(error instanceof ApiUnavailable)) throw error;
    const text = `What keeps the pod's addresses cannot be asked for: ${error.message}`;
    throw new CniError(ErrorCode.TryAgainLater, text, { cause: error });
  }
}

/**
 * Takes the address from an earlier pod of the member on this node, and off its NIC. Each pod is looked at by its own namespace and name: one that
 * lives keeps the address. Rejects with CniError 11 then, and when the NIC still has it.
 */
export async function evictPredecessor(
  { registry, isPodGone, endOrphan }: EvictDeps,
  former: Allocation,
  { namespace, pod }: Pick<Allocation, "namespace" | "pod">,
): Promise<Allocation | undefined> {
  const isSameName = former.namespace === namespace && former.pod === pod;
  // Of two pods of one name the live one, which asks, is the later one. What was claimed ahead for the earlier one is on no NIC.
  if (isSameName && former.containerId === "") return registry.collect(former);
  const cooling = await endOrphan(former);
  if (cooling !== undefined) return cooling;
  if (!(await isPodGone(former))) throw livesOn(former);
  return registry.collect(former);
}

interface EvictDeps {
  readonly registry: { collect(row: Allocation): Promise<Allocation | undefined> };
  readonly isPodGone: (row: Allocation) => Promise<boolean>;
  /** The row as it cools, if its pod is gone and its NIC has lost the address. */
  readonly endOrphan: (row: Allocation) => Promise<Allocation | undefined>;
}

/** `readPod` asks the API server. */
export async function readHolderStatus(
  readPod: (of: { readonly namespace: string; readonly name: string }) => Promise<Pod | undefined>,
  { namespace, pod: name }: Allocation,
  holder: Holder,
): Promise<HolderStatus> {
  if (namespace === holder.namespace && name === holder.pod) return "gone";
  const [pod, found] = await Promise.all([
    readPod({ namespace, name }),
    readPod({ namespace: holder.namespace, name: holder.pod }),
  ]);
  return pod === undefined ? "alive" : decideHolder({ pod, holder, found });
}
