/**
 * Which blocks of one source are claimed to be returned, and which claims are over: those of blocks that plan-blocks.ts
 * returns, and of pools that are gone.
 */

import { type ControlledPool, decodeControlledPool } from "../../../host/controller/objects.ts";
import type { ControllerDeps } from "../../../host/controller/types.ts";
import { callIfThere } from "../../../host/kubernetes/kube-api.ts";
import { objectPath } from "../../../host/kubernetes/paths.ts";
import { IP_POOLS } from "../../../host/resources/collections.ts";
import type { SourceView } from "../blocks/block-source.ts";
import { BlockReturns, blockOfClaim } from "./block-returns.ts";
import { usedBlocks } from "./free-addresses.ts";
import type { BlocksInput } from "./plan-blocks.ts";
import { type Followed, keyOfSource } from "./sourced-pools.ts";

/** How far the blocks have come that are to be returned. */
export interface Returned extends Pick<BlocksInput, "mayReturn" | "progressOf" | "isEmpty"> {
  /** Claimed blocks of pools that are gone. */
  readonly orphans: readonly string[];
}

type Deps = Pick<ControllerDeps, "api" | "caches" | "clock" | "leading">;

export class RangeReturns {
  readonly #deps: Deps;
  readonly #key: string;
  readonly #blocks: BlockReturns;

  constructor(deps: Deps, { key, spec: { range } }: Followed) {
    this.#deps = deps;
    this.#key = key;
    this.#blocks = new BlockReturns(deps, range);
  }

  /** Claims the addresses of the blocks that are to be returned. */
  async claim({ pools, claims: names }: Followed, view: SourceView, mayReturn: boolean): Promise<Returned> {
    const claims = claimsByBlock(names, view);
    const used = usedBlocks(this.#deps.caches.allocations.items.values(), view);
    const leased = Object.entries({ ...view.blocks, ...view.disputed });
    const stateOf = (block: string) =>
      pools.flatMap(({ source }) => source.blocks).find((each) => each.block === block)?.state;
    const orphans: string[] = [];
    for (const [block, pool] of leased) {
      const isOrphan = this.#isGone(pool);
      if (!isOrphan && stateOf(block) !== "Returning") this.#blocks.forget(block);
      else if (mayReturn && (!isOrphan || !used.has(block))) {
        await this.#blocks.claim(block, { pool, view });
        if (isOrphan && this.#blocks.progressOf(block, []) === "claimed") orphans.push(block);
        // In a while the address that was in use may be free.
        if (isOrphan && this.#blocks.progressOf(block, []) === "refused") this.#blocks.forget(block);
      }
    }
    const progressOf = (block: string) => this.#blocks.progressOf(block, claims.get(block) ?? []);
    return { orphans, mayReturn, progressOf, isEmpty: (block) => !used.has(block) };
  }

  /** Deletes the claims that are over. */
  async end({ claims: names }: Followed, view: SourceView, isReturned: (block: string) => boolean): Promise<void> {
    const leased = { ...view.blocks, ...view.disputed };
    for (const [block, claims] of claimsByBlock(names, view)) {
      const pool = leased[block];
      if (pool === undefined) {
        this.#blocks.forget(block);
        await this.#blocks.leave(claims);
      } else if (!isReturned(block) && !this.#isGone(pool))
        await this.#blocks.withdraw(claims, () => this.#isReturned(pool, block));
    }
  }

  /** Whether there is no pool any more that the block could be for. */
  #isGone(pool: string): boolean {
    const object = this.#deps.caches.pools.items.get(pool);
    return object === undefined || isOver(object, this.#key);
  }

  /** Reads the API server: whether the claims of the block are needed. */
  async #isReturned(pool: string, block: string): Promise<boolean> {
    const { api, leading: signal } = this.#deps;
    const object = await callIfThere(api, { method: "GET", path: objectPath(IP_POOLS, { name: pool }), signal });
    const now = object && decodeControlledPool(object);
    if (now?.value?.source === undefined || isOver(now, this.#key)) return true;
    return now.value.source.blocks.find((each) => each.block === block)?.state === "Returning";
  }
}

/**
 * Whether the pool has no use for blocks of the source. A pool without a source may be about to have this one, or have
 * had it until now: `berthctl blocks adopt` and `leave` change a pool and the hub one after the other.
 */
function isOver({ value, deleting }: ControlledPool, key: string): boolean {
  return deleting || (value?.source !== undefined && keyOfSource(value) !== key);
}

/** Returns the claims by which blocks are returned, by block. */
function claimsByBlock(names: readonly string[], view: SourceView): ReadonlyMap<string, readonly string[]> {
  return Map.groupBy(names, (name) => blockOfClaim(name, view) ?? "");
}
