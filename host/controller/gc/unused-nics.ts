/**
 * Finds addresses that are retained although the member's pod does not ask for them: it lives and has other addresses,
 * none of this NIC and family. Its annotations do not announce the NIC or give it the family, or that is disabled.
 */
import { decodePodAnnotations, type FamilyNames, isEnabled, type PodAnnotations } from "../../config/annotations.ts";
import { announcedNics, nicNameAt } from "../../ipam/announced-nics.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { PODS } from "../../kubernetes/paths.ts";
import type { Family } from "../../net/ip.ts";
import type { Holder, IpAllocation } from "../../resources/ip-allocation.ts";
import { isSameMember } from "../../resources/member.ts";
import { decodePod, type Pod } from "../../resources/pod.ts";
import { firstNicOf, settingsOf } from "../caches.ts";
import { ifDecodable } from "../if-decodable.ts";
import type { Caches } from "../types.ts";
import { readObject } from "./read-status.ts";

interface NicDeps {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly signal: AbortSignal;
}

/** `others`: allocations bound to the member's pods, from the API server. Reads its pods there. */
export async function isUnused(
  deps: NicDeps,
  { spec: { workload, ip } }: IpAllocation,
  others: readonly IpAllocation[],
): Promise<boolean> {
  const ifName = workload?.ifName;
  if (ifName === undefined) return false;
  const bound = others.filter(({ spec }) => spec.state === "Bound" && isSameMember(workload, spec.workload));
  const nics = bound.flatMap(({ spec }) => spec.holders.map((holder) => ({ holder, family: spec.ip.family })));
  const own = nics.filter(({ holder }) => holder.ifName === ifName);
  if (nics.length === 0 || own.some(({ family }) => family === ip.family)) return false;
  const pods = await Promise.all(nics.map(({ holder }) => readHolder(deps, holder)));
  const needs = own.length > 0 ? givesFamily : announces;
  return pods.every((pod) => pod !== undefined && !needs(deps, pod, { ifName, family: ip.family }));
}

/** Returns undefined if the pod has ended, or cannot be decoded. */
async function readHolder(deps: NicDeps, { namespace, pod: name, podUid }: Holder): Promise<Pod | undefined> {
  const object = await readObject(deps, PODS, { namespace, name });
  const pod = object && ifDecodable(() => decodePod(object, `Pod "${namespace}/${name}"`));
  return pod?.uid === podUid && !pod.isFinished && !pod.deleting ? pod : undefined;
}

interface NicFamily {
  readonly ifName: string;
  readonly family: Family;
}

function announces({ caches }: NicDeps, pod: Pod, { ifName }: NicFamily): boolean {
  const found = readAnnotations(caches, pod);
  if (found === undefined) return true;
  const listed = [...(found.subnets ?? []), ...(found.ippools ?? [])].map((entry) => entry.interface);
  const isUnreadable = found.networksFault !== undefined || found.networks?.some(({ fault }) => fault !== undefined);
  return isUnreadable || [...announcedNics(found, firstNicOf(caches)), ...listed].includes(ifName);
}

/** For a NIC with addresses: if the pod names no pools, its own addresses stand for them. */
function givesFamily({ caches }: NicDeps, pod: Pod, { ifName, family }: NicFamily): boolean {
  const settings = settingsOf(caches);
  if (!isEnabled(family, settings)) return false;
  const found = readAnnotations(caches, pod);
  if (found === undefined) return true;
  const { ippools, ippool } = found;
  const { subnets, subnet } = settings.enableSubnet ? found : {};
  const listed = subnets ?? (subnet === undefined ? ippools : undefined);
  const entry: FamilyNames | undefined =
    listed?.find((each, at) => (each.interface ?? nicNameAt(at, found, firstNicOf(caches))) === ifName) ??
    (listed === undefined ? (subnet ?? ippool) : undefined);
  return entry?.[`ipv${family}`] !== undefined;
}

/** Returns undefined if they cannot be decoded. */
function readAnnotations(caches: Caches, { annotations }: Pod): PodAnnotations | undefined {
  return ifDecodable(() => decodePodAnnotations(annotations, settingsOf(caches)));
}
