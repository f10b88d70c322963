/**
 * Finds the blocks of one source that may go back: none of their addresses is recorded, or reserved for an owner. A
 * pool marks a block as leaving before its records are listed, and an ADD reads the pool after its address was
 * recorded: so the list has the record, or the ADD gives no address of the block (docs/decisions/0064).
 */

import type { ControlledPool } from "../../../host/controller/objects.ts";
import type { ControllerDeps } from "../../../host/controller/types.ts";
import { listPages } from "../../../host/kubernetes/list.ts";
import { collectionPath } from "../../../host/kubernetes/paths.ts";
import { IP_ALLOCATIONS } from "../../../host/resources/collections.ts";
import { parseAllocationName } from "../../../host/resources/ip-allocation.ts";
import type { SourceView } from "../blocks/block-source.ts";
import { groupByBlock } from "../blocks/uses-of-blocks.ts";
import type { BlocksInput } from "./plan-blocks.ts";
import { type Followed, keyOfSource, ownedAddresses } from "./sourced-pools.ts";

export interface EmptyBlocks extends Pick<BlocksInput, "mayReturn" | "isUsed" | "isEmpty"> {
  /** Empty blocks of pools that are gone. */
  readonly orphans: readonly string[];
}

type Deps = Pick<ControllerDeps, "api" | "caches" | "leading">;

/** Rejects when there is no answer. */
export async function findEmpty(
  deps: Deps,
  { key, pools }: Followed,
  view: SourceView,
  mayReturn: boolean,
): Promise<EmptyBlocks> {
  const leased = Object.entries({ ...view.blocks, ...view.disputed });
  const blocks = leased.map(([block]) => block);
  const usedOf = (addresses: Iterable<SpacedIp>): Iterable<string> =>
    groupByBlock(blocks, addresses, (each) => (each.addressSpace === view.addressSpace ? each.ip : undefined)).keys();
  const recorded = Iterator.from(deps.caches.allocations.items.values()).map(({ spec }) => spec);
  const used = new Set([...usedOf(recorded), ...usedOf(ownedAddresses(deps.caches))]);
  const known = pools.flatMap(({ source }) => source.blocks);
  const isLeaving = (block: string) => known.some((each) => each.block === block && each.state === "Returning");
  const isGone = (pool: string) => isOver(deps.caches.pools.items.get(pool), key);
  const leaving = leased.filter(([block, pool]) => !used.has(block) && (isLeaving(block) || isGone(pool)));
  if (mayReturn)
    for (const pool of new Set(leaving.map(([, pool]) => pool)))
      for (const block of usedOf(await listAddresses(deps, pool))) used.add(block);
  const empty = new Set(mayReturn ? leaving.flatMap(([block]) => (used.has(block) ? [] : [block])) : []);
  const orphans = leaving.flatMap(([block, pool]) => (isGone(pool) && empty.has(block) ? [block] : []));
  return { orphans, mayReturn, isUsed: (block) => used.has(block), isEmpty: (block) => empty.has(block) };
}

type SpacedIp = NonNullable<ReturnType<typeof parseAllocationName>>;

/** Returns the addresses of the pool that the API server has. */
async function listAddresses({ api, leading: signal }: Deps, pool: string): Promise<readonly SpacedIp[]> {
  const query = { fieldSelector: `spec.pool=${pool}` };
  const found: SpacedIp[] = [];
  for await (const { items } of listPages(api, { path: collectionPath(IP_ALLOCATIONS), query, signal }))
    for (const { metadata } of items) {
      const { name = "" } = metadata as { readonly name?: string };
      const address = parseAllocationName(name);
      // An object of a strange name may have any address.
      if (address === undefined) throw new Error(`IPAllocation "${name}" has no address for its name`);
      found.push(address);
    }
  return found;
}

/**
 * Whether the pool has no use for blocks of the source. A pool without a source may be about to have this one, or have
 * had it until now: `berthctl blocks adopt` and `leave` change a pool and the hub one after the other.
 */
function isOver(pool: ControlledPool | undefined, key: string): boolean {
  if (pool === undefined || pool.deleting) return true;
  return pool.value?.source !== undefined && keyOfSource(pool.value) !== key;
}
