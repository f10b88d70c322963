/**
 * What is kept for a workload's pod that does not find its own addresses at once (allocation rule 8). The search for an address begins where the
 * member's last one was found, so that most pods never come here.
 * Effects: reads the registry.
 */
import { CniError, ErrorCode } from "../../../cni/error.ts";
import type { NicDemand } from "../../../ipam/model.ts";
import type { Picked } from "../../../ipam/pick.ts";
import type { PoolCache } from "../../../ipam/pool-cache.ts";
import { findPoolOfRequested } from "../../../ipam/requested-ips.ts";
import { equalIp, formatIp } from "../../../net/ip.ts";
import type { Mac } from "../../../net/mac.ts";
import type { Allocation, Claim, Registry } from "../../../registry/registry.ts";
import { isSameMember, type Workload } from "../../../resources/ip-allocation.ts";
import { type Keepers, workloadOf } from "../proposals.ts";

/** What the cluster's registry can do beside the port. */
export interface KeptTools {
  /** Gives up what is kept and cannot be had any more. */
  readonly releaseRetained?: ((kept: readonly Allocation[]) => Promise<void>) | undefined;
  /** Takes the address from an earlier pod of the member on this node, which the kubelet has not detached; undefined when somebody was faster. Rejects with CniError 11 when that pod lives. */
  readonly displace?:
    | ((former: Allocation, claimant: Pick<Claim, "namespace" | "pod">) => Promise<Allocation | undefined>)
    | undefined;
  /** Waits until another node has let go of an address, or something else has happened to it; false when nothing has within so many milliseconds. */
  readonly awaitChange?: ((holder: Allocation, withinMs: number, signal: AbortSignal) => Promise<boolean>) | undefined;
}

/** Of AddressDemand what matters here. */
interface KeptDemand extends Keepers {
  readonly nics: readonly NicDemand[];
  readonly claimant: Omit<Claim, "proposals">;
  readonly coversPod?: boolean | undefined;
  /** Whether the NIC can be asked for an address now. Absent: there is none yet. */
  readonly canProbe?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
}

/** An address that is kept for a member of the demand, or that an earlier pod of it has, and the NICs of the demand that may have it. */
export interface Retained {
  readonly kept: Allocation;
  readonly picks: readonly Picked[];
}

/** All of them, those that a pod has first, then the last one that was kept. One list of the API server for each workload of the demand. */
export async function findRetained(
  { registry, poolCache }: { readonly registry: Pick<Registry, "findRetained">; readonly poolCache: PoolCache },
  demand: KeptDemand,
): Promise<readonly Retained[]> {
  const members = new Set(demand.nics.flatMap(({ ifName }) => workloadOf(demand, ifName) ?? []));
  const found: Retained[] = [];
  for (const member of members) {
    const nics = demand.nics.filter(({ ifName }) => workloadOf(demand, ifName) === member);
    const all = (await registry.findRetained(member, demand.signal)).filter((kept) => mayHave(demand, kept));
    found.push(...all.map((kept) => ({ kept, picks: picksOf(poolCache, nics, kept) })));
  }
  const isHeld = ({ kept }: Retained): number => (kept.state === "Bound" ? 0 : 1);
  return found.sort((a, b) => isHeld(a) - isHeld(b) || a.kept.version - b.kept.version);
}

/** For each NIC and family that is wanted the first one that it may have. */
export function chooseRetained(
  retained: readonly Retained[],
  isWanted: (nic: Pick<Picked, "ifName" | "ip">) => boolean,
): readonly Picked[] {
  const chosen: Picked[] = [];
  const isFree = (pick: Picked): boolean =>
    !chosen.some((each) => isSameNic(each, pick) || isSameAddress(placeOf(each), placeOf(pick)));
  for (const { picks } of retained) {
    const pick = picks.find((each) => isWanted(each) && isFree(each));
    if (pick !== undefined) chosen.push(pick);
  }
  return chosen;
}

/**
 * What is of no use to the member now that it has these addresses: kept for a NIC and family that has one of them, or in no pool that is selected. What is
 * kept for a NIC that is not asked about now, or does not say for which, may be just what that NIC will want.
 */
export function surplusOf(
  retained: readonly Retained[],
  { nics, coversPod = false }: Pick<KeptDemand, "nics" | "coversPod">,
  rows: readonly Allocation[],
): readonly Allocation[] {
  const isAskedAbout = (ifName: string): boolean => coversPod || nics.some((nic) => nic.ifName === ifName);
  const isSurplus = ({ kept, picks }: Retained): boolean => {
    if (kept.state !== "Kept" || rows.some((row) => isSameAddress(row, kept))) return false;
    return rows.some((row) => isSameNic(row, kept)) || (picks.length === 0 && isAskedAbout(kept.ifName));
  };
  return retained.filter(isSurplus).map(({ kept }) => kept);
}

/** The NICs that could have it: an object that an older agent has Kept does not say of which NIC it was. */
function picksOf(poolCache: PoolCache, nics: readonly NicDemand[], kept: Allocation): Picked[] {
  return nics
    .filter(({ ifName }) => kept.ifName === "" || ifName === kept.ifName)
    .flatMap((nic) => {
      const found = findPoolOfRequested(poolCache, nic, kept.ip);
      if (found.kind !== "pool" || found.pool.spec.addressSpace !== kept.space) return [];
      const probe = kept.quarantine === undefined ? {} : { needsProbe: true };
      return [{ ifName: nic.ifName, pool: found.pool, ip: kept.ip, replaces: kept.version, ...probe }];
    });
}

/**
 * Allocation rule 2: the member's address on a node that is lost, which may still answer for it: only who can ask may have it. Throws CniError 11
 * where there is no NIC yet: the ADD will ask, and another address claimed ahead of it would be the member's for good.
 */
function mayHave({ canProbe }: KeptDemand, { ip, workload, quarantine }: Allocation): boolean {
  if (quarantine === undefined) return true;
  if (canProbe !== undefined) return canProbe();
  const text = `Address ${formatIp(ip)} is kept for "${workload?.member}", whose node is lost, and must be asked for before it is used; its ADD will`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

/** What a search that met such an address goes on with; none when it has to find another one. */
export function inheritLost(poolCache: PoolCache, demand: KeptDemand, holder: Allocation): readonly Picked[] {
  return mayHave(demand, holder) ? picksOf(poolCache, demand.nics, holder).slice(0, 1) : [];
}

/**
 * Whether the holder is an earlier pod of the same member, on this node or on one that is lost: the live pod has more right to its address.
 */
export function isFormer(demand: KeptDemand, holder: Allocation): boolean {
  const isHere = holder.version >= 0 || holder.quarantine !== undefined;
  return isHere && holder.owner !== demand.claimant.owner && isOfMember(demand, holder);
}

function isOfMember(demand: KeptDemand, { ifName, workload }: Allocation): boolean {
  return isSameMember(workloadOf(demand, ifName), workload);
}

/** Throws CniError 11 when another node's pod of the same member lives and keeps the address: the member gets no second one meanwhile. */
export function refuseLiving(demand: KeptDemand, holder: Allocation): void {
  if (holder.version >= 0 || holder.state !== "Bound" || !isOfMember(demand, holder)) return;
  throw livesOn(holder);
}

/** For a pod whose address is still on the NIC of an earlier, deleted pod of the same member, on another node. */
export function awaitsNode({ ip, namespace, pod, workload, predecessorNode }: Allocation): CniError {
  const text = `Address ${formatIp(ip)} is kept for ${describeWorkload(workload, namespace)}, and its earlier pod ${namespace}/${pod}, which is deleted, still has it on node "${predecessorNode}"; try again when the agent of that node has taken it off the pod's NIC, or the pod's sandbox has ended`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

/** For a pod whose address may still be on the NIC of an earlier pod of the same member, on a node that is lost: somebody answers for it. */
export function awaitsLostNode(
  { ip, namespace, pod, workload, predecessorNode }: Allocation,
  mac: Mac | undefined,
): CniError {
  const text = `Address ${formatIp(ip)} is kept for ${describeWorkload(workload, namespace)}, whose earlier pod of the name ${namespace}/${pod} was on node "${predecessorNode}", which is lost, and ${mac ?? "a machine"} still answers for it; try again when that node is back or switched off`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

function describeWorkload(workload: Workload | undefined, namespace: string): string {
  return `${workload?.kind} "${workload?.namespace ?? namespace}/${workload?.name}"`;
}

/** For a pod whose address another pod of the same member still has. */
export function livesOn({ ip, namespace, pod, workload }: Allocation): CniError {
  const text = `Address ${formatIp(ip)} is kept for ${describeWorkload(workload, namespace)}, and pod ${namespace}/${pod} of it still has it; try again when that pod has ended`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

type Place = Pick<Allocation, "space" | "ip">;

function placeOf({ pool, ip }: Picked): Place {
  return { space: pool.spec.addressSpace, ip };
}

function isSameNic(a: Pick<Picked, "ifName" | "ip">, b: Pick<Picked, "ifName" | "ip">): boolean {
  return a.ifName === b.ifName && a.ip.family === b.ip.family;
}

export function isSameAddress(a: Place, b: Place): boolean {
  return a.space === b.space && equalIp(a.ip, b.ip);
}
