/**
 * The two builds of the core, as every test of it must meet both.
 * Effects: reads the built modules.
 */
import { readFileSync } from "node:fs";

function read(name: string): Uint8Array {
  return readFileSync(new URL(`../../../dist/${name}`, import.meta.url));
}

export const CORE_BUILDS = [
  { build: "release", wasm: read("core/berth-core.wasm") },
  { build: "debug", wasm: read("core-debug/berth-core.wasm") },
];
