/**
 * What is kept for a workload's pod that has just been given something else (allocation rule 8). The search for its address begins where its
 * last one was found, so that most pods never come here.
 * Called by claim-addresses.ts.
 * Effects: reads and writes the registry.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AddressBook } from "../../ipam/address-book.ts";
import { findPoolOfAsked } from "../../ipam/asked.ts";
import type { NicDemand } from "../../ipam/model.ts";
import type { Picked } from "../../ipam/pick.ts";
import { equalIp, formatIp } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation, Claim, ClaimOutcome, Registry } from "../../registry/registry.ts";
import { isSameMember, type Workload } from "../../resources/ip-allocation.ts";
import { type Keepers, workloadOf } from "./proposals.ts";

/** What the cluster's registry can do beside the port. */
export interface KeptTools {
  /** Gives up what is kept and cannot be had any more. */
  readonly releaseKept?: ((kept: readonly Allocation[]) => Promise<void>) | undefined;
  /** Takes the address from an earlier pod of the member on this node, which the kubelet has not detached; undefined when somebody was faster. Rejects with CniError 11 when that pod lives. */
  readonly displace?:
    | ((former: Allocation, claimant: Pick<Claim, "namespace" | "pod">) => Promise<Allocation | undefined>)
    | undefined;
  /** Waits until another node has let go of an address, or something else has happened to it; false when nothing has within so many milliseconds. */
  readonly awaitChange?: ((holder: Allocation, withinMs: number, signal: AbortSignal) => Promise<boolean>) | undefined;
}

export type Bound = Extract<ClaimOutcome, { kind: "bound" }>;

/** Of AddressDemand what matters here. */
interface KeptDemand extends Keepers {
  readonly nics: readonly NicDemand[];
  readonly claimant: Omit<Claim, "proposals">;
  readonly isWhole?: boolean | undefined;
  /** Whether the NIC can be asked for an address now. Absent: there is none yet. */
  readonly mayAsk?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
}

/**
 * The members' kept addresses that suit the demand, in place of fresh ones of the same NIC and family; none when it has what it should have.
 * What is kept for it and suits no more is released.
 */
export async function findKeptInstead(
  tools: KeptTools & { readonly registry: Pick<Registry, "findKept">; readonly book: AddressBook },
  demand: KeptDemand,
  bound: Bound,
): Promise<readonly Picked[]> {
  const kept = demand.nics.map(({ ifName }) => workloadOf(demand, ifName));
  const members = new Set(kept.filter((workload) => workload !== undefined));
  const chosen: Picked[] = [];
  for (const member of members) chosen.push(...(await findKeptOf(tools, member, demand, bound)));
  return chosen;
}

async function findKeptOf(
  tools: KeptTools & { readonly registry: Pick<Registry, "findKept">; readonly book: AddressBook },
  member: Workload,
  demand: KeptDemand,
  { held, created, fresh: allFresh = [] }: Bound,
): Promise<readonly Picked[]> {
  const { isWhole = false, signal } = demand;
  const isOfMember = ({ ifName }: { readonly ifName: string }): boolean => workloadOf(demand, ifName) === member;
  const [nics, fresh] = [demand.nics.filter(isOfMember), allFresh.filter(isOfMember)];
  if (fresh.length === 0) return [];
  const own = [...held, ...created];
  const all = (await tools.registry.findKept(member, signal)).filter((each) => mayHave(demand, each));
  const others = all.filter((each) => !own.some((mine) => isSame(mine, each)));
  const fitting = others.map((kept) => ({ kept, picks: picksOf(tools.book, nics, kept) }));
  // What is kept for a NIC that is not asked about now, or does not say for which, may be just what that NIC will want.
  const isAskedAbout = (ifName: string): boolean => nics.some((nic) => nic.ifName === ifName);
  const isUnfit = ({ ifName, state }: Allocation): boolean => state === "Kept" && (isWhole || isAskedAbout(ifName));
  const unfit = fitting.filter(({ kept, picks }) => picks.length === 0 && isUnfit(kept));
  if (unfit.length > 0) await tools.releaseKept?.(unfit.map(({ kept }) => kept));
  const chosen: Picked[] = [];
  const isWanted = ({ ifName, ip }: Picked): boolean => {
    const isIts = (each: Picked | Allocation): boolean => each.ifName === ifName && each.ip.family === ip.family;
    return fresh.some(isIts) && !chosen.some(isIts);
  };
  for (const { picks } of fitting) chosen.push(...picks.filter(isWanted).slice(0, 1));
  return chosen;
}

/** The NICs that could have it: an object that an older agent has Kept does not say of which NIC it was. */
function picksOf(book: AddressBook, nics: readonly NicDemand[], kept: Allocation): Picked[] {
  return nics
    .filter(({ ifName }) => kept.ifName === "" || ifName === kept.ifName)
    .flatMap((nic) => {
      const found = findPoolOfAsked(book, nic, kept.ip);
      if (found.kind !== "pool" || found.pool.spec.addressSpace !== kept.space) return [];
      const isDoubtful = kept.quarantine === undefined ? {} : { isDoubtful: true };
      return [{ ifName: nic.ifName, pool: found.pool, ip: kept.ip, replaces: kept.version, ...isDoubtful }];
    });
}

/**
 * Allocation rule 2: the member's address on a node that is lost, which may still answer for it: only who can ask may have it. Throws CniError 11
 * where there is no NIC yet: the ADD will ask, and another address claimed ahead of it would be the member's for good.
 */
function mayHave({ mayAsk }: KeptDemand, { ip, workload, quarantine }: Allocation): boolean {
  if (quarantine === undefined) return true;
  if (mayAsk !== undefined) return mayAsk();
  const text = `Address ${formatIp(ip)} is kept for "${workload?.member}", whose node is lost, and must be asked for before it is used; its ADD will`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

/** What a search that met such an address goes on with; none when it has to find another one. */
export function inheritLost(book: AddressBook, demand: KeptDemand, holder: Allocation): readonly Picked[] {
  return mayHave(demand, holder) ? picksOf(book, demand.nics, holder).slice(0, 1) : [];
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
export function awaitsNode({ ip, namespace, pod, workload, awaitedOf }: Allocation): CniError {
  const text = `Address ${formatIp(ip)} is kept for ${describeWorkload(workload, namespace)}, and its earlier pod ${namespace}/${pod}, which is deleted, still has it on node "${awaitedOf}"; try again when the agent of that node has taken it off the pod's NIC, or the pod's sandbox has ended`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

/** For a pod whose address may still be on the NIC of an earlier pod of the same member, on a node that is lost: somebody answers for it. */
export function awaitsLostNode(
  { ip, namespace, pod, workload, awaitedOf }: Allocation,
  mac: Mac | undefined,
): CniError {
  const text = `Address ${formatIp(ip)} is kept for ${describeWorkload(workload, namespace)}, whose earlier pod of the name ${namespace}/${pod} was on node "${awaitedOf}", which is lost, and ${mac ?? "a machine"} still answers for it; try again when that node is back or switched off`;
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

function isSame(a: Allocation, b: Allocation): boolean {
  return a.space === b.space && equalIp(a.ip, b.ip);
}
