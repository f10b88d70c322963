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

/**
 * The member's kept addresses that suit the demand, in place of fresh ones of the same NIC and family; none when it has what it should have.
 * What is kept for it and suits no more is released.
 */
export async function findKeptInstead(
  tools: KeptTools & { readonly registry: Pick<Registry, "findKept">; readonly book: AddressBook },
  { nics, claimant, signal }: { nics: readonly NicDemand[]; claimant: Omit<Claim, "proposals">; signal: AbortSignal },
  { held, created, fresh = [] }: Bound,
): Promise<readonly Picked[]> {
  if (claimant.workload === undefined || fresh.length === 0) return [];
  const own = [...held, ...created];
  const all = await tools.registry.findKept(claimant.workload, signal);
  const others = all.filter((each) => !own.some((mine) => isSame(mine, each)));
  const fitting = others.map((kept) => ({ kept, picked: pick(tools.book, nics, kept) }));
  const unfit = fitting.filter(({ kept, picked }) => picked === undefined && kept.state === "Kept");
  if (unfit.length > 0) await tools.releaseKept?.(unfit.map(({ kept }) => kept));
  const isFresh = ({ ifName, ip }: Picked): boolean =>
    fresh.some((each) => each.ifName === ifName && each.ip.family === ip.family);
  return fitting.flatMap(({ picked }) => (picked !== undefined && isFresh(picked) ? [picked] : []));
}

function pick(book: AddressBook, nics: readonly NicDemand[], kept: Allocation): Picked | undefined {
  const nic = nics.find(({ ifName }) => ifName === kept.ifName);
  const found = nic === undefined ? undefined : findPoolOfAsked(book, nic, kept.ip);
  if (found?.kind !== "pool" || found.pool.spec.addressSpace !== kept.space) return undefined;
  return { ifName: kept.ifName, pool: found.pool, ip: kept.ip, replaces: kept.version };
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
