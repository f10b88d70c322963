/**
 * The addresses of ranges numbered from 0 in their order: how a bitmap says which of them are in use, and a hash that names the ranges it
 * was made for. The same order and hash as the core's (docs/wasm-abi.md, Snapshots), without it.
 */
import { joinRanges } from "../../core/spans.ts";
import { countLeading } from "../../lib/search.ts";
import type { Family, Ip } from "../../net/ip.ts";
import type { Range } from "../../net/range.ts";

interface Ordinals {
  readonly family: Family;
  /** Ascending; no two touch. */
  readonly ranges: readonly Range[];
  /** For each range: how many addresses lie before it. */
  readonly before: readonly bigint[];
  readonly size: bigint;
}

/** The ranges are of one family; they may overlap and stand in any order. None: nothing of IPv4. */
export function ordinalsOf(ranges: readonly Range[]): Ordinals {
  const family = ranges[0]?.first.family ?? 4;
  const joined = joinRanges(ranges, family);
  const before: bigint[] = [];
  let size = 0n;
  for (const { first, last } of joined) {
    before.push(size);
    size += last.value - first.value + 1n;
  }
  return { family, ranges: joined, before, size };
}

/** Which of the ranges, ascending and disjoint, has the address: its place in the list, or -1. */
export function findRange(ranges: readonly Range[], { family, value }: Ip): number {
  const at = countLeading(ranges, ({ first }) => first.value <= value) - 1;
  const found = ranges[at];
  return found !== undefined && found.first.family === family && value <= found.last.value ? at : -1;
}

const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

/** 64 bits of FNV-1a as 16 hexadecimal digits: {@link formatHash} of the core's digest of the same ranges. */
export function hashOfRanges({ family, ranges }: Ordinals): string {
  let hash = FNV_OFFSET;
  const take = (value: bigint, bytes: number): void => {
    for (let byte = 0; byte < bytes; byte++) {
      hash = BigInt.asUintN(64, (hash ^ ((value >> BigInt(8 * byte)) & 0xffn)) * FNV_PRIME);
    }
  };
  take(BigInt(family), 4);
  for (const { first, last } of ranges) {
    for (const { value } of [first, last]) {
      take(value >> 64n, 8);
      take(BigInt.asUintN(64, value), 8);
    }
  }
  return formatHash(hash);
}

export function formatHash(hash: bigint): string {
  return hash.toString(16).padStart(16, "0");
}

/** The addresses whose bits are set, ascending: 4 or 16 big-endian bytes each. Ordinal i is bit i mod 8 of byte i / 8. */
export function packMarked({ family, ranges, before, size }: Ordinals, bitmap: Uint8Array): Uint8Array {
  const width = family === 4 ? 4 : 16;
  const marked = bitmap.reduce((sum, byte) => sum + bitsIn(byte), 0);
  const packed = new Uint8Array(marked * width);
  let length = 0;
  for (const [at, { first, last }] of ranges.entries()) {
    const start = Number(before[at] ?? size);
    const count = Number(last.value - first.value) + 1;
    // Numbers cost a tenth of what bigints do.
    const view = new DataView(packed.buffer);
    const low = family === 4 ? Number(first.value) : 0;
    for (let step = 0; step < count; step++) {
      const ordinal = start + step;
      const byte = bitmap[ordinal >>> 3] ?? 0;
      if ((byte & (1 << (ordinal & 7))) === 0) continue;
      if (family === 4) view.setUint32(length, low + step);
      else writeBytes(packed, length, first.value + BigInt(step));
      length += width;
    }
  }
  // Bits beyond the last ordinal mean nothing.
  return packed.subarray(0, length);
}

function writeBytes(into: Uint8Array, at: number, value: bigint): void {
  let rest = value;
  for (let byte = at + 15; byte >= at; byte--) {
    into[byte] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}

function bitsIn(byte: number): number {
  let count = 0;
  for (let rest = byte; rest !== 0; rest &= rest - 1) count++;
  return count;
}
