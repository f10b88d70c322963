/**
 * Whether an address is retained for a NIC that its member's pod does not have: the pod lives and has addresses of
 * other NICs, its annotations do not announce this one, and no pod of the member has an address for it.
 */
import { decodePodAnnotations } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import { announcedNics } from "../../ipam/announced-nics.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { PODS } from "../../kubernetes/paths.ts";
import type { Holder, IpAllocation } from "../../resources/ip-allocation.ts";
import { isSameMember } from "../../resources/member.ts";
import { decodePod, type Pod } from "../../resources/pod.ts";
import { firstNicOf, settingsOf } from "../caches.ts";
import type { Caches } from "../types.ts";
import { readObject } from "./read-status.ts";

interface NicDeps {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly signal: AbortSignal;
}

/** `others`: allocations that are bound to the member's pods, as read from the API server. Reads its pods there. */
export async function isOfUnusedNic(
  deps: NicDeps,
  { spec: { workload } }: IpAllocation,
  others: readonly IpAllocation[],
): Promise<boolean> {
  const ifName = workload?.ifName;
  if (ifName === undefined) return false;
  const bound = others.filter(({ spec }) => spec.state === "Bound" && isSameMember(workload, spec.workload));
  const holders = bound.flatMap(({ spec }) => spec.holders);
  if (holders.length === 0 || holders.some((holder) => holder.ifName === ifName)) return false;
  const pods = await Promise.all(holders.map((holder) => readHolder(deps, holder)));
  return pods.every((pod) => pod !== undefined && !announces(deps, pod, ifName));
}

/** Returns undefined if it has ended, or cannot be decoded. */
async function readHolder(deps: NicDeps, { namespace, pod: name, podUid }: Holder): Promise<Pod | undefined> {
  const object = await readObject(deps, PODS, { namespace, name });
  try {
    const pod = object && decodePod(object, `Pod "${namespace}/${name}"`);
    return pod?.uid === podUid && !pod.isFinished && !pod.deleting ? pod : undefined;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

function announces({ caches }: NicDeps, { annotations }: Pod, ifName: string): boolean {
  try {
    const found = decodePodAnnotations(annotations, settingsOf(caches));
    const listed = [...(found.subnets ?? []), ...(found.ippools ?? [])].map((entry) => entry.interface);
    const isUnreadable = found.networksFault !== undefined || found.networks?.some(({ fault }) => fault !== undefined);
    return isUnreadable || [...announcedNics(found, firstNicOf(caches)), ...listed].includes(ifName);
  } catch (error) {
    if (error instanceof ConfigError) return true;
    throw error;
  }
}
