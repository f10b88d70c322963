/**
 * One instance of the core, in which many pools live. The only door for allocation: ipam decides, this
 * remembers. Opened by the agent.
 * Effects: the core instance's memory.
 */
import { CoreModule } from "./module.ts";
import { Pool } from "./pool.ts";
import type { PoolShape } from "./pool-shape.ts";

export class PoolSpace {
  readonly #core: CoreModule;

  private constructor(core: CoreModule) {
    this.#core = core;
  }

  /** Returns a fresh instance, made synchronously from the bytes of berth-core.wasm. */
  static open(wasm: Uint8Array | ArrayBuffer): PoolSpace {
    return new PoolSpace(CoreModule.open(wasm));
  }

  /** Returns a pool with nothing used. Throws CoreError for mixed families, a reversed range, or a ceiling. */
  createPool(shape: PoolShape): Pool {
    return Pool.create(this.#core, shape);
  }

  /** Returns the size of the core's memory in use: bytes. */
  sizeBytes(): number {
    return this.#core.exports.state_bytes();
  }
}
