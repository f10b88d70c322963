/**
 * The wait of an ADD whose generated pool is not there yet, or has no address: until pools change, by the event, and then once more from selection
 * (docs/subnets.md). Meanwhile nothing is asked and nothing is claimed.
 * Effects: those of what is tried; one look at a Subnet when it gives up for want of a pool.
 */

import type { FamilyDemand } from "../../ipam/model.ts";
import { PoolShortage } from "../../ipam/refusal.ts";
import { isGrowing, refuseUnsupplied, type SubnetState } from "../../ipam/subnet-capacity.ts";
import { findSubnetPool } from "../../ipam/subnet-pools.ts";
import type { PoolOwner } from "../../resources/fields/subnet-pool.ts";
import type { Catalogue } from "./catalogue.ts";
import type { PoolChanges } from "./demand.ts";

/** How long an ADD waits for addresses of a generated pool, from when it found none: milliseconds. Then its pod is refused with the reason, and comes again. @limit */
export const POOL_WAIT_MS = 5_000;

export interface SupplyTools {
  readonly catalogue: Catalogue;
  readonly nowMs: () => number;
  readonly poolChanges?: PoolChanges | undefined;
  /** Absent: nobody generates pools. */
  readonly supply?: SupplyQuestions | undefined;
}

export interface SupplyQuestions {
  /** Never rejects. */
  /** For a workload of the namespace. */
  readonly lookAtSubnet: (
    of: { readonly name: string; readonly namespace: string },
    signal: AbortSignal,
  ) => Promise<SubnetState>;
  /** The pods of this workload found no pool: to which it belongs is to be looked up anew. */
  readonly forget: (application: PoolOwner) => void;
}

/** Whether a demand that finds its pools full is left at once: what it wants is on its way, or will be waited for. */
export type SkipIfFull = (demand: FamilyDemand) => boolean;

/** Rejects as `attempt` did last, in the words of {@link refuseUnsupplied} for want of a pool. */
export async function waitForPool<T>(
  tools: SupplyTools,
  attempt: (skipIfFull: SkipIfFull) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const first = await tryOnce(tools, attempt, isGrowing);
  if (first.kind === "done") return first.result;
  const untilMs = tools.nowMs() + POOL_WAIT_MS;
  let latest: Short = first;
  while (await hasRoom(tools, latest, untilMs, signal)) {
    const next = await tryOnce(tools, attempt, () => true);
    if (next.kind === "done") return next.result;
    latest = next;
  }
  const last = await tryOnce(tools, attempt, () => false);
  if (last.kind === "done") return last.result;
  throw await refuse(tools, last.shortage, signal);
}

interface Short {
  readonly kind: "short";
  readonly shortage: PoolShortage;
  /** What was known of pools when the attempt began. */
  readonly since: number;
}

type Tried<T> = { readonly kind: "done"; readonly result: T } | Short;

async function tryOnce<T>(
  { poolChanges }: SupplyTools,
  attempt: (skipIfFull: SkipIfFull) => Promise<T>,
  skipIfFull: SkipIfFull,
): Promise<Tried<T>> {
  const since = poolChanges?.count ?? 0;
  try {
    return { kind: "done", result: await attempt(skipIfFull) };
  } catch (error) {
    if (!(error instanceof PoolShortage) || error.demand.generated === undefined) throw error;
    return { kind: "short", shortage: error, since };
  }
}

/** Resolves when one of the pools has an address again as far as this node knows; false when the time is over. */
async function hasRoom(tools: SupplyTools, short: Short, untilMs: number, signal: AbortSignal): Promise<boolean> {
  const { poolChanges, nowMs, catalogue } = tools;
  let { since } = short;
  while (await poolChanges?.changed(signal, { since, withinMs: untilMs - nowMs() })) {
    since = poolChanges?.count ?? 0;
    await catalogue.loaded();
    if (findRoom(catalogue, short.shortage.demand)) return true;
  }
  return false;
}

function findRoom({ snapshot, poolCache }: Catalogue, { generated }: FamilyDemand): boolean {
  if (generated === undefined) return false;
  const pools = findSubnetPool(snapshot.pools.values(), generated.wish);
  return pools.some(({ name }) => (poolCache.counts(name)?.free ?? 0n) > 0n);
}

async function refuse({ supply }: SupplyTools, shortage: PoolShortage, signal: AbortSignal): Promise<Error> {
  const { candidates, generated } = shortage.demand;
  if (candidates.length > 0 || generated === undefined) return refuseUnsupplied(shortage, POOL_WAIT_MS, undefined);
  supply?.forget(generated.application);
  const [name = ""] = generated.wish.subnets;
  const { namespace } = generated.application;
  return refuseUnsupplied(shortage, POOL_WAIT_MS, await supply?.lookAtSubnet({ name, namespace }, signal));
}
