/**
 * Addresses and ranges as the bytes of the core's exchange buffer: 4 or 16 bytes, big-endian.
 * Effects: writes to the view it is given.
 */
import { bitsOf, type Family } from "../net/ip.ts";
import type { Range } from "../net/range.ts";

/** Bytes of an address of the family. */
export function widthOf(family: Family): 4 | 16 {
  return family === 4 ? 4 : 16;
}

export function writeAddress(view: DataView, offset: number, family: Family, value: bigint): void {
  if (family === 4) {
    view.setUint32(offset, Number(value));
  } else {
    view.setBigUint64(offset, value >> 64n);
    view.setBigUint64(offset + 8, value); // the view keeps the low 64 bits
  }
}

export function readAddress(view: DataView, offset: number, family: Family): bigint {
  if (family === 4) return BigInt(view.getUint32(offset));
  return (view.getBigUint64(offset) << 64n) | view.getBigUint64(offset + 8);
}

/** Writes pairs (first, last) one after another from the start of the view. */
export function writeRanges(view: DataView, family: Family, ranges: readonly Range[]): void {
  const width = widthOf(family);
  for (const [index, range] of ranges.entries()) {
    writeAddress(view, 2 * index * width, family, range.first.value);
    writeAddress(view, (2 * index + 1) * width, family, range.last.value);
  }
}

/** Reads a 17-byte address count. */
export function readSize(view: DataView, offset: number): bigint {
  const high = BigInt(view.getUint8(offset)) << BigInt(bitsOf(6));
  return high | readAddress(view, offset + 1, 6);
}
