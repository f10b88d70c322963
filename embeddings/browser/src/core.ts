/**
 * One instance of the core, in which many pools and sets live. It belongs to the thread that opened it.
 * Effects: the instance's memory.
 */
import type { CoreExports } from "../../../host/core/core-exports.ts";
import { CoreModule, openExports } from "../../../host/core/module.ts";
import { Pool as PoolOfValues } from "../../../host/core/pool.ts";
import { RangeSet as RangeSetOfValues } from "../../../host/core/range-set.ts";
import type { Family } from "../../../host/net/ip.ts";
import { compileCore, type WasmSource } from "./load.ts";
import { Pool } from "./pool.ts";
import { Prefixes } from "./prefixes.ts";
import { RangeSet } from "./range-set.ts";
import { requireRange } from "./text.ts";

/** The raw exports of a fresh instance that holds nothing, not even an exchange buffer. */
export async function openRaw(wasm?: WasmSource): Promise<CoreExports> {
  return openExports(await compileCore(wasm));
}

export class Core {
  readonly #module: CoreModule;
  /** Arithmetic of prefixes. */
  readonly prefixes: Prefixes;

  private constructor(module: CoreModule) {
    this.#module = module;
    this.prefixes = new Prefixes(module);
  }

  /**
   * A fresh instance of the core that comes with this package, or of another one. Throws CoreError when its ABI is
   * another.
   */
  static async open(wasm?: WasmSource): Promise<Core> {
    return new Core(CoreModule.open(await compileCore(wasm)));
  }

  /** Like {@link open}, at once. Chromium before 114 refuses it, and {@link copy}, on a page's main thread. */
  static openSync(wasm: Uint8Array | ArrayBuffer | WebAssembly.Module): Core {
    return new Core(CoreModule.open(wasm));
  }

  /** The raw exports, for ordinals: with the `handle` of a pool or set. docs/develop/wasm-abi.md describes them. */
  get raw(): CoreExports {
    return this.#module.share();
  }

  /**
   * A pool with nothing used. The ranges ("10.0.0.0/24", "10.0.0.1-10.0.0.9", "10.0.0.7") are of one family, may
   * overlap and stand in any order; `masked` addresses are never found. Throws CoreError on two families or a
   * ceiling.
   */
  createPool(ranges: readonly string[], masked: readonly string[] = []): Pool {
    const shape = { ranges: ranges.map(requireRange), masked: masked.map(requireRange) };
    return Pool.adopt(this.#module, PoolOfValues.create(this.#module, shape));
  }

  /** A set of the addresses of ranges and prefixes, which may overlap and stand in any order. `family` is for none. */
  rangeSet(ranges: readonly string[], family?: Family): RangeSet {
    const parsed = ranges.map(requireRange);
    const values = RangeSetOfValues.create(this.#module, family ?? parsed[0]?.first.family ?? 4, parsed);
    return RangeSet.adopt(this.#module, values);
  }

  /**
   * An equal instance, and after it each of the given pools and sets in it. The two go separate ways from here:
   * `const [twin, poolOfTwin] = core.copy(pool)`.
   */
  copy<T extends readonly (Pool | RangeSet)[]>(...objects: T): [core: Core, ...objects: T] {
    const copy = this.#module.clone();
    const twins = objects.map((object) => object.inCopy(this.#module, copy));
    return [new Core(copy), ...(twins as readonly (Pool | RangeSet)[] as T)];
  }

  /** Returns the size of the core's memory in use: bytes. */
  sizeBytes(): number {
    return this.#module.exports.state_bytes();
  }

  /** Pools and sets that are not dropped. */
  liveObjects(): number {
    return this.#module.check("live_objects", this.#module.exports.live_objects());
  }
}
