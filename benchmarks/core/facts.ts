/**
 * What the core costs before it does anything: bytes, instantiation, pools, memory.
 * Effects: instances' memory.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PoolSpace } from "../../host/core/pool-space.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { median } from "./contestants.ts";

export interface Facts {
  readonly moduleBytes: number;
  readonly instantiateMicroseconds: number;
  readonly emptyCallNanoseconds: number;
  readonly thousandPoolsMilliseconds: number;
  /** The core's memory for an empty /8, and the growth of the process per pool when 200 are made. */
  readonly emptySlash8Bytes: number;
  readonly emptySlash8ResidentBytes: number;
}

function shapeOf(first: number, size: number) {
  const ip = (value: number) => ({ family: 4, value: BigInt(value) }) as const;
  const end = (value: number) => ({ first: ip(value), last: ip(value) });
  return { ranges: [{ first: ip(first), last: ip(first + size - 1) }], masked: [end(first), end(first + size - 1)] };
}

function timed(work: () => void): number {
  const started = performance.now();
  work();
  return performance.now() - started;
}

export function gatherFacts(): Facts {
  const wasm = readFileSync(join(root, "dist/core/berth-core.wasm"));
  const module = new WebAssembly.Module(wasm);
  const instantiations = Array.from({ length: 50 }, () => timed(() => new WebAssembly.Instance(module, {})) * 1000);
  const exports = new WebAssembly.Instance(module, {}).exports as { abi_version(): number };
  const call = () =>
    timed(() => {
      for (let i = 0; i < 200_000; i++) exports.abi_version();
    });
  const thousand = () =>
    timed(() => {
      const space = PoolSpace.open(wasm);
      for (let i = 0; i < 1000; i++) space.createPool(shapeOf(0x0a000000 + i * 256, 256));
    });
  const makeMany = (space: PoolSpace): void => {
    for (let i = 0; i < 200; i++) space.createPool(shapeOf(0x0a000000, 2 ** 24));
  };
  makeMany(PoolSpace.open(wasm));
  const space = PoolSpace.open(wasm);
  space.createPool(shapeOf(0x0a000000, 2 ** 24));
  const sizeBefore = space.sizeBytes();
  const residentBefore = process.memoryUsage.rss();
  makeMany(space);
  return {
    moduleBytes: wasm.length,
    instantiateMicroseconds: median(instantiations),
    emptyCallNanoseconds: median(Array.from({ length: 9 }, call)) * 5,
    thousandPoolsMilliseconds: median(Array.from({ length: 5 }, thousand)),
    emptySlash8Bytes: (space.sizeBytes() - sizeBefore) / 200,
    emptySlash8ResidentBytes: Math.max(0, process.memoryUsage.rss() - residentBefore) / 200,
  };
}
