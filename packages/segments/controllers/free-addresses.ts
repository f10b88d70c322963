/** How many of a block's addresses are free. */
import type { CachedAllocation } from "../../../host/controller/cached-allocation.ts";
import { joinSpans, sizeOf, spansOf, withoutSpans } from "../../../host/core/spans.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import { rangesOfBlocks } from "../blocks/blocks-of-range.ts";
import { groupByBlock } from "../blocks/uses-of-blocks.ts";

/** Returns the function that counts the addresses of a block that are free. */
export function freeCounter(
  pool: IpPool,
  allocations: Iterable<CachedAllocation>,
  blocks: readonly string[],
  reserved: Parameters<typeof poolShape>[1],
): (block: string) => number {
  const masked = joinSpans(spansOf(poolShape(pool, reserved).masked));
  const uses = groupByBlock(blocks, allocations, ({ spec }) =>
    spec.addressSpace === pool.spec.addressSpace ? spec.ip : undefined,
  );
  const freeOf = (block: string): number => Number(sizeOf(withoutSpans(spansOf(rangesOfBlocks([block])), masked)));
  const counts = new Map(
    blocks.map((block) => [block, Math.max(0, freeOf(block) - (uses.get(block)?.length ?? 0))] as const),
  );
  return (block) => counts.get(block) ?? 0;
}
