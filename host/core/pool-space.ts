/**
 * Pools of addresses in one instance of the core: which are used, which is free next.
 * The only door for allocation; ipam decides, this remembers. No objects per address on the JavaScript side.
 * Effects: the core instance's memory.
 */
import type { Family, Ip } from "../net/ip.ts";
import type { Range } from "../net/range.ts";
import { CoreError } from "./core-error.ts";
import { Status } from "./core-exports.ts";
import { readIp, readSize, widthOf, writeIp } from "./ip-codec.ts";
import { CoreModule } from "./module.ts";
import { createSetHandle, RangeSet } from "./range-set.ts";

/**
 * What a pool is made of. All ranges are of one family; they may overlap and stand in any order. `masked` addresses
 * (excluded, reserved, gateway, network, broadcast) are never found, but keep their used marks.
 */
export interface PoolShape {
  readonly ranges: readonly Range[];
  readonly masked: readonly Range[];
}

export interface PoolCounts {
  /** Allocatable addresses: in the ranges and not masked. */
  readonly total: bigint;
  /** Addresses marked used, masked ones too. */
  readonly used: number;
  /** Of those, masked. */
  readonly usedMasked: number;
  /** Allocatable addresses that are not used. */
  readonly free: bigint;
  /** Ordinals in the bitmap, at most 2^24; addresses beyond can be claimed but are not found. */
  readonly window: number;
}

export class PoolSpace {
  readonly #core: CoreModule;

  private constructor(core: CoreModule) {
    this.#core = core;
  }

  /** A fresh instance, made synchronously from the bytes of berth-core.wasm. */
  static open(wasm: Uint8Array | ArrayBuffer): PoolSpace {
    return new PoolSpace(CoreModule.open(wasm));
  }

  /** A pool with nothing used. Throws CoreError on ranges of two families, a range the wrong way round, or a ceiling. */
  createPool(shape: PoolShape): Pool {
    return Pool.create(this.#core, shape);
  }

  /** A set of addresses beside the pools. */
  rangeSet(family: Family, ranges: readonly Range[]): RangeSet {
    return RangeSet.create(this.#core, family, ranges);
  }
}

function familyOfShape(shape: PoolShape, otherwise: Family): Family {
  return (shape.ranges[0] ?? shape.masked[0])?.first.family ?? otherwise;
}

/** Calls `use` with the handles of the shape's two sets, which end with it. */
function withSets<T>(core: CoreModule, shape: PoolShape, family: Family, use: (ranges: number, masks: number) => T): T {
  const ranges = createSetHandle(core, family, shape.ranges);
  try {
    const masks = createSetHandle(core, family, shape.masked);
    try {
      return use(ranges, masks);
    } finally {
      core.exports.drop(masks);
    }
  } finally {
    core.exports.drop(ranges);
  }
}

export class Pool implements Disposable {
  readonly #core: CoreModule;
  #family: Family;
  #handle: number;

  private constructor(core: CoreModule, family: Family, handle: number) {
    this.#core = core;
    this.#family = family;
    this.#handle = handle;
  }

  /** For {@link PoolSpace.createPool}. */
  static create(core: CoreModule, shape: PoolShape): Pool {
    const family = familyOfShape(shape, 4);
    const handle = withSets(core, shape, family, (ranges, masks) => core.exports.pool_create(ranges, masks));
    return new Pool(core, family, core.check("pool_create", handle));
  }

  /** Whether the address is allocatable: in a range and not masked. */
  contains(ip: Ip): boolean {
    return this.#pass(ip) && this.#core.check("pool_contains", this.#core.exports.pool_contains(this.#handle)) === 1;
  }

  /** Whether the address is marked used. */
  test(ip: Ip): boolean {
    return this.#pass(ip) && this.#mark("pool_test", this.#core.exports.pool_test(this.#handle)) === 1;
  }

  /** The first free address at or after ordinal `seed` modulo the window, wrapping once. `seed` is any u32. */
  findFree(seed: number): Ip | undefined {
    const ordinal = this.#core.exports.pool_find(this.#handle, seed);
    if (ordinal === Status.NONE) return undefined;
    this.#core.check("pool_find", ordinal);
    this.#core.check("pool_address", this.#core.exports.pool_address(this.#handle, ordinal));
    return readIp(this.#core.reserve(16), 0, this.#family);
  }

  /** The lowest free address of the window. */
  findFreeAscending(): Ip | undefined {
    return this.findFree(0);
  }

  /** Marks an address used. A masked one can be marked too: ask {@link contains} first where that matters. */
  claim(ip: Ip): "claimed" | "taken" | "outside" {
    if (!this.#pass(ip)) return "outside";
    const result = this.#mark("pool_claim", this.#core.exports.pool_claim(this.#handle));
    return result === Status.OUTSIDE ? "outside" : result === 1 ? "claimed" : "taken";
  }

  /** Marks an address not used. */
  release(ip: Ip): "released" | "free" | "outside" {
    if (!this.#pass(ip)) return "outside";
    const result = this.#mark("pool_release", this.#core.exports.pool_release(this.#handle));
    return result === Status.OUTSIDE ? "outside" : result === 1 ? "released" : "free";
  }

  /** Marks addresses used, given as 4 or 16 big-endian bytes each; ignores those outside. How many are newly marked. */
  claimMany(packed: Uint8Array): number {
    const width = widthOf(this.#family);
    if (packed.length % width !== 0) {
      throw new CoreError(
        "pool_claim_many",
        Status.BAD_ARGUMENT,
        `${packed.length} bytes, wanted a multiple of ${width}`,
      );
    }
    this.#core.write(packed);
    return this.#core.check("pool_claim_many", this.#core.exports.pool_claim_many(this.#handle, packed.length / width));
  }

  counts(): PoolCounts {
    this.#core.check("pool_counts", this.#core.exports.pool_counts(this.#handle));
    const view = this.#core.output();
    const total = readSize(view, 0) - readSize(view, 17);
    const used = view.getUint32(40, true);
    const usedMasked = view.getUint32(44, true);
    return { total, used, usedMasked, free: total - BigInt(used - usedMasked), window: view.getUint32(36, true) };
  }

  /** Gives the pool another shape. Used marks stay wherever the address is in the new ranges; others are forgotten. */
  edit(shape: PoolShape): void {
    const family = familyOfShape(shape, this.#family);
    if (family !== this.#family && this.counts().window > 0) {
      throw new CoreError("pool_edit", Status.BAD_FAMILY, `a shape of IPv${family} for a pool of IPv${this.#family}`);
    }
    if (family === this.#family) {
      const status = withSets(this.#core, shape, family, (r, m) => this.#core.exports.pool_edit(this.#handle, r, m));
      this.#core.check("pool_edit", status);
    } else {
      const successor = Pool.create(this.#core, shape);
      this.drop();
      this.#family = family;
      this.#handle = successor.#handle;
    }
  }

  /** Gives the memory back; every later use is a CoreError. */
  drop(): void {
    this.#core.check("drop", this.#core.exports.drop(this.#handle));
  }

  [Symbol.dispose](): void {
    this.drop();
  }

  /** Writes the address where the core reads it; false when its family is not the pool's. */
  #pass(ip: Ip): boolean {
    if (ip.family !== this.#family) return false;
    writeIp(this.#core.reserve(16), 0, ip);
    return true;
  }

  /** A result in which "outside" is no failure. */
  #mark(operation: string, result: number): number {
    return result === Status.OUTSIDE ? result : this.#core.check(operation, result);
  }
}
