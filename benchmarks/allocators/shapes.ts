/**
 * The pools on which all allocators compete, as a folder that a program of any language reads: shapes.json, and for each
 * shape what is used, as the core's snapshot and as plain addresses.
 * Effects: writes the folder; the core's memory.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PoolSpace } from "../../host/core/pool-space.ts";
import { type Family, formatIp, type Ip, parseIp } from "../../host/net/ip.ts";
import { root } from "../../scripts/setup/paths.mjs";

export interface Shape {
  readonly name: string;
  readonly first: string;
  /** The pool has 2^bits addresses. */
  readonly bits: number;
  /** Share of the addresses that are used, or their number from 1 on. */
  readonly fill: number;
  readonly pattern: "packed" | "random";
}

/** An entry of shapes.json; `snapshot` and `used` are file names beside it. */
export interface ShapeEntry {
  readonly name: string;
  readonly family: Family;
  /** First and last address of each range. */
  readonly ranges: readonly (readonly [string, string])[];
  /** What `pool_load` takes, for a pool of these ranges without masks. */
  readonly snapshot: string;
  /** The used addresses, ascending, 4 or 16 big-endian bytes each. */
  readonly used: string;
  /** Addresses per batch. */
  readonly batch: number;
}

export const SHAPES: readonly Shape[] = [
  { name: "/16 empty", first: "10.0.0.0", bits: 16, fill: 0, pattern: "packed" },
  { name: "/16 50 % random", first: "10.0.0.0", bits: 16, fill: 0.5, pattern: "random" },
  { name: "/16 99 % random", first: "10.0.0.0", bits: 16, fill: 0.99, pattern: "random" },
  { name: "/16 99 % packed", first: "10.0.0.0", bits: 16, fill: 0.99, pattern: "packed" },
  { name: "/10 50 % packed", first: "10.64.0.0", bits: 22, fill: 0.5, pattern: "packed" },
  { name: "IPv6 /64, 10,000 used", first: "2001:db8::", bits: 64, fill: 10_000, pattern: "packed" },
];

const BATCH = 256;
const FIRST_SEED = 2_463_534_242;

/**
 * The ordinals that are used, ascending. The first, and of IPv4 the last, always are: a subnet's network and broadcast
 * addresses, which most allocators keep to themselves.
 */
export function usedOrdinals({ first, bits, fill, pattern }: Shape): bigint[] {
  const size = 2 ** bits;
  const reserved = new Set(first.includes(":") ? [0] : [0, size - 1]);
  const wanted = Math.max(reserved.size, fill < 1 ? Math.floor(size * fill) : fill);
  const candidates = pattern === "packed" ? count(wanted) : shuffled(size);
  for (const ordinal of candidates) {
    if (reserved.size === wanted) break;
    reserved.add(ordinal);
  }
  return [...reserved].sort((a, b) => a - b).map(BigInt);
}

function count(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}

/** 0 to `length` - 1 in an order that chance decides, the same every time. */
function shuffled(length: number): number[] {
  const values = count(length);
  let seed = FIRST_SEED;
  for (let end = length - 1; end > 0; end--) {
    seed = nextSeed(seed);
    const other = seed % (end + 1);
    const value = values[end] ?? 0;
    values[end] = values[other] ?? 0;
    values[other] = value;
  }
  return values;
}

/** xorshift32. */
function nextSeed(seed: number): number {
  let x = seed;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  return x >>> 0;
}

/** Big-endian, one after another. */
export function packAddresses(first: Ip, ordinals: readonly bigint[]): Uint8Array {
  const width = first.family === 4 ? 4 : 16;
  const bytes = new Uint8Array(ordinals.length * width);
  const view = new DataView(bytes.buffer);
  for (const [index, ordinal] of ordinals.entries()) {
    const value = first.value + ordinal;
    if (width === 4) view.setUint32(index * width, Number(value));
    else {
      view.setBigUint64(index * width, value >> 64n);
      view.setBigUint64(index * width + 8, BigInt.asUintN(64, value));
    }
  }
  return bytes;
}

/** Writes the folder; gives what shapes.json has. */
export function writeShapes(folder: string, shapes: readonly Shape[] = SHAPES): ShapeEntry[] {
  mkdirSync(folder, { recursive: true });
  const space = PoolSpace.open(readFileSync(join(root, "dist", "core", "berth-core.wasm")));
  const entries = shapes.map((shape, index): ShapeEntry => {
    const first = parseIp(shape.first);
    if (first === undefined) throw new Error(`Shape "${shape.name}": "${shape.first}" is no address`);
    const last: Ip = { family: first.family, value: first.value + 2n ** BigInt(shape.bits) - 1n };
    const packed = packAddresses(first, usedOrdinals(shape));
    const [snapshot, used] = [`shape-${index}.snapshot`, `shape-${index}.used`];
    using pool = space.createPool({ ranges: [{ first, last }], masked: [] });
    pool.claimMany(packed);
    writeFileSync(join(folder, snapshot), pool.save());
    writeFileSync(join(folder, used), packed);
    return {
      name: shape.name,
      family: first.family,
      ranges: [[shape.first, formatIp(last)]],
      snapshot,
      used,
      batch: BATCH,
    };
  });
  writeFileSync(join(folder, "shapes.json"), `${JSON.stringify(entries, null, 2)}\n`);
  return entries;
}

if (import.meta.main) {
  const folder = process.argv[2];
  if (folder === undefined) throw new Error("No folder given");
  for (const { name } of writeShapes(folder)) console.log(name);
}
