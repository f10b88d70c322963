/** Which records lie in which block: for lists and metrics. */
import { bitsOf, type Ip } from "../../../host/net/ip.ts";
import { type Prefix, parsePrefix } from "../../../host/net/prefix.ts";

/** Returns the records by the block that their address is in; `blocks` do not overlap. Other records are left out. */
export function groupByBlock<T>(
  blocks: readonly string[],
  records: Iterable<T>,
  ipOf: (record: T) => Ip | undefined,
): ReadonlyMap<string, readonly T[]> {
  const byFirst = new Map<string, string>();
  const lengths = new Set<number>();
  for (const block of blocks) {
    const prefix = parsePrefix(block);
    if (prefix === undefined) continue;
    lengths.add(prefix.length);
    byFirst.set(keyOf(prefix), block);
  }
  const found = new Map<string, T[]>();
  for (const record of records) {
    const ip = ipOf(record);
    if (ip === undefined) continue;
    for (const length of lengths) {
      const block = byFirst.get(keyOf({ ip, length }));
      if (block === undefined) continue;
      found.getOrInsertComputed(block, () => []).push(record);
      break;
    }
  }
  return found;
}

function keyOf({ ip: { family, value }, length }: Prefix): string {
  return `${family} ${length} ${value >> BigInt(Math.max(0, bitsOf(family) - length))}`;
}
