/**
 * One pool of addresses: which are used, which is free next. No object per address on the JavaScript side.
 * Made by {@link PoolSpace.createPool}; lives until {@link Pool.drop}.
 * Effects: the core instance's memory.
 */
import type { Family, Ip } from "../net/ip.ts";
import { CoreError } from "./core-error.ts";
import { Policy, Status } from "./core-exports.ts";
import { type CoreModule, readAddress, writeAddress } from "./module.ts";
import { familyOfShape, type PoolCounts, type PoolShape, readCounts, withSets } from "./pool-shape.ts";

/** In which order free addresses of the window are taken (docs/develop/wasm-abi.md, Policies). */
export type AllocationOrder = keyof typeof Policy;

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

  /** Returns the family, also of an empty pool; {@link edit} may change that of an empty one. */
  get family(): Family {
    return this.#family;
  }

  /** The pool's handle for the raw exports. */
  get handle(): number {
    return this.#handle;
  }

  /** Returns whether the address is allocatable: in a range and not masked. */
  contains(ip: Ip): boolean {
    return this.#ask("pool_contains", ip) === 1;
  }

  /** Returns whether the address is marked used. */
  test(ip: Ip): boolean {
    return this.#ask("pool_test", ip) === 1;
  }

  /** Returns the first free address at or after ordinal `seed` modulo the window, wrapping once. `seed` is any u32. */
  findFree(seed: number): Ip | undefined {
    return this.#addressOf("pool_find", this.#core.exports.pool_find(this.#handle, seed));
  }

  /** Claims and returns the next address in the order; undefined if none is free. `seed`, any u32: for "hashed". */
  allocate(order: AllocationOrder, seed = 0): Ip | undefined {
    const result = this.#core.exports.pool_allocate(this.#handle, Policy[order], seed);
    return this.#addressOf("pool_allocate", result, order);
  }

  /** Marks an address used. A masked one can be marked too: check {@link contains} first if that matters. */
  claim(ip: Ip): "claimed" | "taken" | "outside" {
    const result = this.#ask("pool_claim", ip);
    return result === Status.OUTSIDE ? "outside" : result === 1 ? "claimed" : "taken";
  }

  /** Marks an address not used. */
  release(ip: Ip): "released" | "free" | "outside" {
    const result = this.#ask("pool_release", ip);
    return result === Status.OUTSIDE ? "outside" : result === 1 ? "released" : "free";
  }

  /** Marks addresses used: 4 or 16 big-endian bytes each. Ignores those outside. Returns how many are newly marked. */
  claimMany(packed: Uint8Array): number {
    const count = this.#core.writeAddresses("pool_claim_many", this.#family, packed);
    return this.#core.check("pool_claim_many", this.#core.exports.pool_claim_many(this.#handle, count));
  }

  /**
   * Marks ordinals used, whose bits are set: ordinal i is bit i mod 8 of byte i / 8, as {@link usedBitmap} writes
   * them. Bits beyond the window mean nothing. Returns how many are newly marked.
   */
  claimMarked(bitmap: Uint8Array): number {
    const input = this.#core.reserve(4 * 8 * bitmap.length);
    let count = 0;
    for (let ordinal = 0; ordinal < 8 * bitmap.length; ordinal++)
      if (((bitmap[ordinal >> 3] ?? 0) & (1 << (ordinal & 7))) !== 0) input.setUint32(4 * count++, ordinal, true);
    return this.#core.check("pool_claim_at_many", this.#core.exports.pool_claim_at_many(this.#handle, count));
  }

  counts(): PoolCounts {
    this.#core.check("pool_counts", this.#core.exports.pool_counts(this.#handle));
    return readCounts(this.#core.output());
  }

  /** Returns free addresses in each block of 4,096 ordinals of the window; the last block may be shorter. */
  freePerBlock(): Uint16Array {
    const blocks = this.#core.check("pool_blocks", this.#core.exports.pool_blocks(this.#handle));
    const view = this.#core.output();
    return Uint16Array.from({ length: blocks }, (_, block) => view.getUint16(2 * block, true));
  }

  /**
   * Returns one bit for each of the first `count` ordinals, set when its address is used, masked or not: ordinal i is
   * bit i mod 8 of byte i / 8.
   */
  usedBitmap(count: number): Uint8Array {
    const input = this.#core.reserve(4 * count);
    for (let ordinal = 0; ordinal < count; ordinal++) input.setUint32(4 * ordinal, ordinal, true);
    this.#core.check("pool_test_at_many", this.#core.exports.pool_test_at_many(this.#handle, count));
    return packBits(this.#core.output(), count);
  }

  /** Returns the used addresses as a snapshot for pools with the same ranges, without masks and order of release. */
  save(): Uint8Array {
    return this.#core.read(this.#core.check("pool_save", this.#core.exports.pool_save(this.#handle)));
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

  /** Frees the memory. Every later use throws CoreError. */
  drop(): void {
    this.#core.check("drop", this.#core.exports.drop(this.#handle));
  }

  [Symbol.dispose](): void {
    this.drop();
  }

  /** Returns the address of the ordinal that an operation returned; undefined if there was none. */
  #addressOf(operation: string, result: number, got?: string): Ip | undefined {
    if (result === Status.NONE) return undefined;
    const ordinal = this.#core.check(operation, result, got);
    this.#core.reserve(16);
    this.#core.check("pool_address", this.#core.exports.pool_address(this.#handle, ordinal));
    return { family: this.#family, value: readAddress(this.#core.reserve(16), 0, this.#family) };
  }

  /** Returns the result of an operation on one address; OUTSIDE also for an address of the other family. */
  #ask(operation: "pool_claim" | "pool_contains" | "pool_release" | "pool_test", ip: Ip): number {
    if (ip.family !== this.#family) return Status.OUTSIDE;
    writeAddress(this.#core.reserve(16), 0, ip.family, ip.value);
    const result = this.#core.exports[operation](this.#handle);
    return result === Status.OUTSIDE ? result : this.#core.check(operation, result);
  }
}

/** Packs the lowest bits of the first `count` bytes: that of byte i becomes bit i mod 8 of byte i / 8. */
function packBits(bytes: DataView, count: number): Uint8Array {
  const packed = new Uint8Array(Math.ceil(count / 8));
  for (let at = 0; at < count; at++) packed[at >> 3] = (packed[at >> 3] ?? 0) | ((bytes.getUint8(at) & 1) << (at & 7));
  return packed;
}
