/** The blocks of an AddressRange: aligned, all of one size. */
import { bitsOf, compareIp } from "../../../host/net/ip.ts";
import { firstIp, formatPrefix, lastIp, type Prefix, parsePrefix } from "../../../host/net/prefix.ts";
import { type Range, rangeOfPrefix } from "../../../host/net/range.ts";
import type { AddressRangeSpec } from "../address-range.ts";

/** Returns how many blocks the range has: at most MAX_BLOCKS. */
export function countBlocks({ subnet, blockSize }: Pick<AddressRangeSpec, "subnet" | "blockSize">): number {
  return 2 ** (blockSize - subnet.length);
}

/** Returns the block of this number, from 0. */
export function blockAt({ subnet, blockSize }: Pick<AddressRangeSpec, "subnet" | "blockSize">, index: number): Prefix {
  const { family, value } = firstIp(subnet);
  const step = BigInt(bitsOf(family) - blockSize);
  return { ip: { family, value: value + (BigInt(index) << step) }, length: blockSize };
}

/** Returns the prefix of a block's text. Throws for a text that is none. */
export function requirePrefix(block: string): Prefix {
  const prefix = parsePrefix(block);
  if (prefix === undefined) throw new Error(`"${block}" is no prefix`);
  return prefix;
}

/** Ignores texts that are no blocks. */
export function rangesOfBlocks(blocks: readonly string[]): readonly Range[] {
  return blocks.flatMap((block) => parsePrefix(block) ?? []).map(rangeOfPrefix);
}

/** Returns the two halves of a prefix of at least two addresses. */
export function halvesOf({ ip: { family, value }, length }: Prefix): readonly Prefix[] {
  const step = 1n << BigInt(bitsOf(family) - length - 1);
  return [value, value + step].map((first) => ({ ip: { family, value: first }, length: length + 1 }));
}

/** Orders blocks, written as prefixes, by their addresses. */
export function compareBlocks(a: string, b: string): number {
  const [one, other] = [parsePrefix(a), parsePrefix(b)];
  return one === undefined || other === undefined ? 0 : compareIp(one.ip, other.ip);
}

/** Returns whether no pod could have an address of the block: it is excluded, or nodes', as a whole. */
function isUseless({ excluded, nodes }: AddressRangeSpec, block: Prefix): boolean {
  const [first, last] = [firstIp(block), lastIp(block)];
  return [...excluded, ...nodes].some(
    (range) => compareIp(range.first, first) <= 0 && compareIp(range.last, last) >= 0,
  );
}

/**
 * Returns at most `count` blocks that are not taken, from the one of number `start` on, and around. Clusters that
 * start apart seldom choose the same.
 */
export function chooseBlocks(
  spec: AddressRangeSpec,
  taken: (block: string) => boolean,
  { count, start }: { readonly count: number; readonly start: number },
): readonly string[] {
  const total = countBlocks(spec);
  const chosen: string[] = [];
  for (let offset = 0; offset < total && chosen.length < count; offset++) {
    const block = blockAt(spec, (start + offset) % total);
    const text = formatPrefix(block);
    if (!taken(text) && !isUseless(spec, block)) chosen.push(text);
  }
  return chosen;
}
