/**
 * What is kept for a workload's pod that has just been given something else (allocation rule 8). The search for its address begins where its
 * last one was found, so that most pods never come here.
 * Called by claim-addresses.ts.
 * Effects: reads and writes the registry.
 */
import type { AddressBook } from "../../ipam/address-book.ts";
import { findPoolOfAsked } from "../../ipam/asked.ts";
import type { NicDemand } from "../../ipam/model.ts";
import type { Picked } from "../../ipam/pick.ts";
import { equalIp } from "../../net/ip.ts";
import type { Allocation, Claim, ClaimOutcome, Registry } from "../../registry/registry.ts";

/** What the cluster's registry can do beside the port. */
export interface KeptTools {
  /** Gives up what is kept and cannot be had any more. */
  readonly releaseKept?: ((kept: readonly Allocation[]) => Promise<void>) | undefined;
  /** Takes the address from an earlier pod of the member on this node, which the kubelet has not detached; undefined when somebody was faster. */
  readonly displace?: ((former: Allocation) => Promise<Allocation | undefined>) | undefined;
}

export type Bound = Extract<ClaimOutcome, { kind: "bound" }>;

/** Of AddressDemand what matters here. */
interface KeptDemand {
  readonly nics: readonly NicDemand[];
  readonly claimant: Omit<Claim, "proposals">;
  readonly isWhole?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * The member's kept addresses that suit the demand, in place of fresh ones of the same NIC and family; none when it has what it should have.
 * What is kept for it and suits no more is released.
 */
export async function findKeptInstead(
  tools: KeptTools & { readonly registry: Pick<Registry, "findKept">; readonly book: AddressBook },
  { nics, claimant, isWhole = false, signal }: KeptDemand,
  { held, created, fresh = [] }: Bound,
): Promise<readonly Picked[]> {
  if (claimant.workload === undefined || fresh.length === 0) return [];
  const own = [...held, ...created];
  const all = await tools.registry.findKept(claimant.workload, signal);
  const others = all.filter((each) => !own.some((mine) => isSame(mine, each)));
  const fitting = others.map((kept) => ({ kept, picks: picksOf(tools.book, nics, kept) }));
  // What does not say for which NIC it is kept may be that of a NIC that is not asked about now.
  const isUnfit = ({ ifName, state }: Allocation): boolean => state === "Kept" && (isWhole || ifName !== "");
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

/** The NICs that could have it: an object that is Kept does not say of which NIC it was. */
function picksOf(book: AddressBook, nics: readonly NicDemand[], kept: Allocation): Picked[] {
  return nics
    .filter(({ ifName }) => kept.ifName === "" || ifName === kept.ifName)
    .flatMap((nic) => {
      const found = findPoolOfAsked(book, nic, kept.ip);
      if (found.kind !== "pool" || found.pool.spec.addressSpace !== kept.space) return [];
      return [{ ifName: nic.ifName, pool: found.pool, ip: kept.ip, replaces: kept.version }];
    });
}

/** Whether the holder is an earlier pod of the same member, on this node: the live pod has more right to its address. */
export function isFormer(claimant: Omit<Claim, "proposals">, holder: Allocation): boolean {
  const { workload, owner } = claimant;
  if (workload === undefined || holder.version < 0 || holder.owner === owner) return false;
  return holder.workload?.uid === workload.uid && holder.workload.member === workload.member;
}

function isSame(a: Allocation, b: Allocation): boolean {
  return a.space === b.space && equalIp(a.ip, b.ip);
}
