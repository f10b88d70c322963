/** Which blocks have addresses in use, and how many of a block's addresses are free. */

import type { CachedAllocation } from "../../../host/controller/cached-allocation.ts";
import { joinSpans, sizeOf, spansOf, withoutSpans } from "../../../host/core/spans.ts";
import type { Ip } from "../../../host/net/ip.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixContains } from "../../../host/net/prefix.ts";
import { rangeOfPrefix } from "../../../host/net/range.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import type { SourceView } from "../blocks/block-source.ts";

/** Returns the blocks of which an address is recorded. */
export function usedBlocks(allocations: Iterable<CachedAllocation>, view: SourceView): ReadonlySet<string> {
  const used = new Set<string>();
  for (const { spec } of allocations) {
    if (spec.addressSpace !== view.addressSpace || !prefixContains(view.subnet, spec.ip)) continue;
    const block = blockOf(spec.ip, view);
    if (block !== undefined) used.add(block);
  }
  return used;
}

/** Returns the function that counts the addresses of a block that are free. */
export function freeCounter(
  pool: IpPool,
  allocations: Iterable<CachedAllocation>,
  { blocks, size }: { readonly blocks: readonly string[]; readonly size: bigint },
  reserved: Parameters<typeof poolShape>[1],
): (block: string) => number {
  const prefixes = blocks.flatMap((block) => parsePrefix(block) ?? []);
  const masked = joinSpans(spansOf(poolShape(pool, reserved).masked));
  const freeOf = (block: Prefix): number => Number(sizeOf(withoutSpans(spansOf([rangeOfPrefix(block)]), masked)));
  const counts = new Map(prefixes.map((block) => [formatPrefix(block), freeOf(block)]));
  // Blocks are aligned: the first address of the one that an address is in is a multiple of their size.
  const byFirst = new Map(prefixes.map((block) => [block.ip.value, formatPrefix(block)]));
  for (const { spec } of allocations) {
    if (spec.addressSpace !== pool.spec.addressSpace || spec.ip.family !== pool.spec.family) continue;
    const block = byFirst.get(spec.ip.value - (spec.ip.value % size));
    if (block !== undefined) counts.set(block, Math.max(0, (counts.get(block) ?? 0) - 1));
  }
  return (block) => counts.get(block) ?? 0;
}

/** Returns the block that the address is in; undefined if it is of the other family. */
export function blockOf(
  { family, value }: Ip,
  { subnet, size }: Pick<SourceView, "subnet" | "size">,
): string | undefined {
  const bits = BigInt(Math.log2(size));
  const length = (family === 4 ? 32 : 128) - Number(bits);
  return family === subnet.ip.family
    ? formatPrefix({ ip: { family, value: (value >> bits) << bits }, length })
    : undefined;
}
