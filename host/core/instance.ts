/**
 * The instance of the core in which this process does its range arithmetic. It is opened at first use, from the file
 * beside the bundles, or from the program itself where that is one file. Pools that live long have instances of their
 * own (pool-space.ts).
 * Effects: reads the module once.
 */
import { readFileSync } from "node:fs";
import { getRawAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { CoreModule } from "./module.ts";

const MODULE = import.meta.url.endsWith(".ts") ? "../../dist/core/berth-core.wasm" : "core/berth-core.wasm";

/** Returns the bytes of the built core. Throws if the product is not built. */
export function readCoreWasm(): Uint8Array {
  if (isSea()) return new Uint8Array(getRawAsset("berth-core.wasm"));
  return readFileSync(fileURLToPath(new URL(MODULE, import.meta.url)));
}

let instance: CoreModule | undefined;

export function coreInstance(): CoreModule {
  instance ??= CoreModule.open(readCoreWasm());
  return instance;
}
