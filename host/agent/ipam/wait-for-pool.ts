/**
 * The waits of an ADD for its pools. One whose generated pool does not exist yet, or has no free address
 * (docs/subnets.md), or whose pool leases blocks and has none with a free address (docs/clusters.md), waits until
 * pools change, by the event, and then goes on once more from selection. Meanwhile nothing is read and nothing is
 * claimed. Before its claim a new pod waits for pools that no controller has looked at as they are now: of their
 * addresses, those of Nodes and Services may lack a record (rule known-stays).
 */
import type { FamilyDemand } from "../../ipam/model.ts";
import { poolsOf } from "../../ipam/pick.ts";
import {
  isGrowing,
  isLeasing,
  leasingPools,
  maySupply,
  PoolShortage,
  refuseUnsupplied,
} from "../../ipam/subnet-capacity.ts";
import { findSubnetPool } from "../../ipam/subnet-pools.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { type AddDeadline, BLOCK_WAIT_MS, OBSERVED_WAIT_MS, POOL_WAIT_MS, Timeout } from "../request/add-deadline.ts";
import type { PoolChanges, SuppliedPools } from "./cluster-ipam.ts";
import type { PoolInventory } from "./pool-inventory.ts";
import type { AddressDemand } from "./sources/source.ts";

interface WaitForPoolDeps {
  readonly inventory: PoolInventory;
  /** Default: there are no such pools. */
  readonly cluster?: SuppliedPools | undefined;
}

/** Whether a demand whose pools are full is refused at once: addresses are on their way, or will be waited for. */
export type SkipIfFull = (demand: FamilyDemand) => boolean;

const NEVER: SkipIfFull = () => false;

/** Rejects as the last `attempt` did; for want of addresses in the words of {@link refuseUnsupplied}. */
export async function waitForPool<T>(
  deps: WaitForPoolDeps,
  attempt: (skipIfFull: SkipIfFull) => Promise<T>,
  deadline: AddDeadline,
): Promise<T> {
  let timeoutFor: Short["timeoutFor"] | undefined;
  for (let skipIfFull: SkipIfFull = isGrowing; ; ) {
    const since = deps.cluster?.poolChanges.changeCount ?? 0;
    try {
      return await attempt(skipIfFull);
    } catch (error) {
      if (!(error instanceof PoolShortage) || !maySupply(error.demand)) throw error;
      if (skipIfFull === NEVER) throw await refuse(deps, error, deadline.signal);
      timeoutFor ??= await beginWait(deps, error.demand, deadline);
      const short = { demand: error.demand, since, timeoutFor };
      skipIfFull = (await hasRoom(deps, short, deadline.signal)) ? () => true : NEVER;
    }
  }
}

/** Returns the time that the ADD waits, from now on, for the pools of a demand. */
async function beginWait(
  { cluster, inventory }: WaitForPoolDeps,
  demand: FamilyDemand,
  deadline: AddDeadline,
): Promise<Short["timeoutFor"]> {
  await Promise.all(leasingPools(demand).map(({ name }) => cluster?.markWanted(name)));
  const supplied = new Timeout(deadline.clock, POOL_WAIT_MS);
  const leased = new Timeout(deadline.clock, BLOCK_WAIT_MS);
  return (each) => (awaitsBlock(inventory, each) ? leased : supplied);
}

interface Short {
  readonly demand: FamilyDemand;
  /** {@link PoolChanges.changeCount} when the attempt began. */
  readonly since: number;
  readonly timeoutFor: (demand: FamilyDemand) => Timeout;
}

/** Resolves when one of the pools has a free address by this node's knowledge; with false at the end of the time. */
async function hasRoom(
  { cluster, inventory }: WaitForPoolDeps,
  { demand, since: start, timeoutFor }: Short,
  signal: AbortSignal,
): Promise<boolean> {
  if (cluster === undefined) return false;
  const { poolChanges } = cluster;
  let since = start;
  while (await poolChanges.changed(signal, { since, withinMs: timeoutFor(demand).leftMs })) {
    since = poolChanges.changeCount;
    await inventory.loaded();
    if (hasFreeAddress(inventory, demand)) return true;
  }
  return false;
}

function hasFreeAddress({ snapshot, poolCache }: PoolInventory, demand: FamilyDemand): boolean {
  const { generated } = demand;
  const pools = generated === undefined ? poolsOf(demand) : findSubnetPool(snapshot.pools, generated);
  return pools.some(({ name }) => (poolCache.counts(name)?.free ?? 0n) > 0n);
}

/** Returns whether a pool of the demand may soon have a block, as far as this node knows now. */
function awaitsBlock({ snapshot: { pools } }: PoolInventory, demand: FamilyDemand): boolean {
  return leasingPools(demand).some(({ name }) => {
    const pool = pools.get(name);
    return pool !== undefined && isLeasing(pool);
  });
}

async function refuse({ cluster }: WaitForPoolDeps, shortage: PoolShortage, signal: AbortSignal): Promise<Error> {
  const { candidates, generated } = shortage.demand;
  if (candidates.length > 0 || generated === undefined) return refuseUnsupplied(shortage, POOL_WAIT_MS, undefined);
  cluster?.forgetPoolOwners();
  const [name = ""] = generated.subnets;
  const { namespace } = generated.application;
  return refuseUnsupplied(shortage, POOL_WAIT_MS, await cluster?.readSubnet({ name, namespace }, signal));
}

type Known = Pick<Snapshot, "coordinator" | "pools">;

/**
 * Returns the first pool that no controller has looked at. Those that it generated count as checked; without a
 * Coordinator no controller is expected.
 */
export function findUnobserved({ coordinator, pools }: Known, among: Iterable<IpPool> = pools.values()) {
  if (coordinator === undefined) return undefined;
  for (const { name } of among) {
    const { spec, isObserved } = pools.get(name) ?? {};
    if (spec !== undefined && spec.generated === undefined && isObserved !== true) return name;
  }
  return undefined;
}

/** Whether the demand's candidates have such a pool. */
export function hasUnobserved(known: Known, { nics }: Pick<AddressDemand, "nics">): boolean {
  const among = nics.flatMap(({ families }) => families.flatMap(poolsOf));
  return findUnobserved(known, among) !== undefined;
}

/** For a pod without an address, and for a bounded time: without a controller, NICs that can probe are served. */
export async function untilObserved(
  { inventory, poolChanges }: { readonly inventory: PoolInventory; readonly poolChanges: PoolChanges },
  demand: AddressDemand,
  deadline: AddDeadline,
): Promise<void> {
  const timeout = new Timeout(deadline.clock, OBSERVED_WAIT_MS);
  if ((await inventory.registry.findOwner(demand.claimant.owner)).length > 0) return;
  while (hasUnobserved(inventory.snapshot, demand)) {
    const wait = { since: poolChanges.changeCount, withinMs: timeout.leftMs };
    if (!(await poolChanges.changed(deadline.signal, wait))) return;
  }
}
