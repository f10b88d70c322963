/**
 * One pool of addresses: which are used, which is free next. No object per address on the JavaScript side.
 * Made by {@link PoolSpace.createPool}; lives until {@link Pool.drop}.
 * Effects: the core instance's memory.
 */
import type { Family, Ip } from "../net/ip.ts";
import { formatRange, type Range } from "../net/range.ts";
import { CoreError } from "./core-error.ts";
import { Policy, Status } from "./core-exports.ts";
import { readIp, widthOf, writeIp } from "./ip-codec.ts";
import type { CoreModule } from "./module.ts";
import { familyOfShape, type PoolCounts, type PoolShape, readCounts, withSets } from "./pool-shape.ts";
import { RangeSet } from "./range-set.ts";

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
    return this.#pass(ip) && this.#core.check("pool_contains", this.#core.exports.pool_contains(this.#handle)) === 1;
  }

  /** Returns whether the address is marked used. */
  test(ip: Ip): boolean {
    return this.#pass(ip) && this.#mark("pool_test", this.#core.exports.pool_test(this.#handle)) === 1;
  }

  /** Returns the first free address at or after ordinal `seed` modulo the window, wrapping once. `seed` is any u32. */
  findFree(seed: number): Ip | undefined {
    return this.#addressOf(this.#found("pool_find", this.#core.exports.pool_find(this.#handle, seed)));
  }

  /** Returns the lowest free address of the window. */
  findFreeAscending(): Ip | undefined {
    return this.findFree(0);
  }

  /**
   * The first free address in hashed order over all addresses, those beyond the window too: at or after the seed's low
   * bits, as many as the largest ordinal has, wrapping once. `seed` is any 128-bit number.
   */
  findFreeWide(seed: bigint): Ip | undefined {
    writeIp(this.#core.reserve(16), 0, { family: 6, value: seed });
    const found = this.#found("pool_find_wide", this.#core.exports.pool_find_wide(this.#handle));
    return found === undefined ? undefined : readIp(this.#core.output(), 0, this.#family);
  }

  /**
   * `count` free addresses that follow one another, the first a multiple of 2^alignBits; in the window, from ordinal
   * `seed` modulo the window on, wrapping once.
   */
  findFreeRun(count: number, alignBits: number, seed: number): Range | undefined {
    const ordinal = this.#found(
      "pool_find_run",
      this.#core.exports.pool_find_run(this.#handle, seed, count, alignBits),
      `count ${count}, alignBits ${alignBits}`,
    );
    const first = this.#addressOf(ordinal);
    if (first === undefined) return undefined;
    return { first, last: { family: first.family, value: first.value + BigInt(count) - 1n } };
  }

  /**
   * Claims and returns the next address in the given order; undefined if none is free. `seed`, any u32, is for
   * "hashed".
   */
  allocate(order: AllocationOrder, seed = 0): Ip | undefined {
    const result = this.#core.exports.pool_allocate(this.#handle, Policy[order], seed);
    return this.#addressOf(this.#found("pool_allocate", result, order));
  }

  /** Claims up to `count` addresses: 4 or 16 big-endian bytes each, fewer when no more are free. */
  allocateMany(count: number, order: AllocationOrder, seed = 0): Uint8Array {
    const result = this.#core.exports.pool_allocate_many(this.#handle, Policy[order], seed, count);
    const taken = this.#core.check("pool_allocate_many", result, `${count}, ${order}`);
    return this.#core.read(taken * widthOf(this.#family));
  }

  /** From now on remembers the order in which addresses of the window become free, for LEAST_RECENTLY_FREED. */
  trackFreed(): void {
    this.#core.check("pool_track_freed", this.#core.exports.pool_track_freed(this.#handle));
  }

  /** Marks an address used. A masked one can be marked too: check {@link contains} first if that matters. */
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

  /**
   * Marks addresses used, given as 4 or 16 big-endian bytes each; ignores those outside. Returns how many are newly
   * marked.
   */
  claimMany(packed: Uint8Array): number {
    return this.#many("pool_claim_many", this.#core.exports.pool_claim_many, packed);
  }

  /** Like {@link claimMany}, marking them not used. Returns how many were used. */
  releaseMany(packed: Uint8Array): number {
    return this.#many("pool_release_many", this.#core.exports.pool_release_many, packed);
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

  /** {@link contains} of addresses given as 4 or 16 big-endian bytes each: 1 or 0 for each. */
  containsMany(packed: Uint8Array): Uint8Array {
    return this.#whichOf("pool_contains_many", this.#core.exports.pool_contains_many, packed);
  }

  /** {@link test} of addresses given as 4 or 16 big-endian bytes each: 1 or 0 for each. */
  testMany(packed: Uint8Array): Uint8Array {
    return this.#whichOf("pool_test_many", this.#core.exports.pool_test_many, packed);
  }

  /** Marks a range of the window used, all or nothing: "taken" if one address is used or masked. */
  claimRun(range: Range): "claimed" | "taken" | "outside" {
    const run = this.#runOf(range);
    if (run === undefined) return "outside";
    const result = this.#core.exports.pool_claim_run(this.#handle, run.start, run.count);
    return this.#core.check("pool_claim_run", result, formatRange(range)) === 1 ? "claimed" : "taken";
  }

  /** Marks a range of the window not used. Returns how many of its addresses were used. */
  releaseRun(range: Range): number | "outside" {
    const run = this.#runOf(range);
    if (run === undefined) return "outside";
    const result = this.#core.exports.pool_release_run(this.#handle, run.start, run.count);
    return this.#core.check("pool_release_run", result, formatRange(range));
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

  /** Returns the used addresses, masked or not, as a set that the caller drops. Throws CoreError above 2^20 runs. */
  used(): RangeSet {
    return RangeSet.adopt(this.#core, this.#family, "pool_used", this.#core.exports.pool_used(this.#handle));
  }

  /** Returns a copy of the ranges, as a set that the caller drops. */
  ranges(): RangeSet {
    return RangeSet.adopt(this.#core, this.#family, "pool_ranges", this.#core.exports.pool_ranges(this.#handle));
  }

  /** Returns a copy of the masks, as far as they lie in the ranges, as a set that the caller drops. */
  masks(): RangeSet {
    return RangeSet.adopt(this.#core, this.#family, "pool_masks", this.#core.exports.pool_masks(this.#handle));
  }

  /**
   * Returns the used addresses as bytes for {@link load} of a pool with the same ranges, without masks and order of
   * release.
   */
  save(): Uint8Array {
    return this.#core.read(this.#core.check("pool_save", this.#core.exports.pool_save(this.#handle)));
  }

  /**
   * Replaces the used addresses by those that {@link save} wrote. The pool is unchanged unless the result is "loaded".
   */
  load(snapshot: Uint8Array): "loaded" | "damaged" | "other version" | "other pool" {
    this.#core.write(snapshot);
    const status = this.#core.exports.pool_load(this.#handle, snapshot.length);
    if (status === Status.BAD_SNAPSHOT) return "damaged";
    if (status === Status.OTHER_VERSION) return "other version";
    if (status === Status.OTHER_POOL) return "other pool";
    this.#core.check("pool_load", status);
    return "loaded";
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

  /** Returns the same pool in a clone of the instance; for {@link PoolSpace.clone}. */
  inClone(core: CoreModule): Pool {
    return new Pool(core, this.#family, this.#handle);
  }

  /** Returns the result; "none" is not a failure. */
  #found(operation: string, result: number, got?: string): number | undefined {
    return result === Status.NONE ? undefined : this.#core.check(operation, result, got);
  }

  #addressOf(ordinal: number | undefined): Ip | undefined {
    if (ordinal === undefined) return undefined;
    this.#core.reserve(16);
    this.#core.check("pool_address", this.#core.exports.pool_address(this.#handle, ordinal));
    return readIp(this.#core.reserve(16), 0, this.#family);
  }

  #many(operation: string, many: (pool: number, count: number) => number, packed: Uint8Array): number {
    const count = this.#core.writeAddresses(operation, this.#family, packed);
    return this.#core.check(operation, many(this.#handle, count));
  }

  /** Returns 1 or 0 for each address; 0 for one outside. */
  #whichOf(operation: string, many: (pool: number, count: number) => number, packed: Uint8Array): Uint8Array {
    this.#many(operation, many, packed);
    return this.#core.read(packed.length / widthOf(this.#family)).map((result) => (result === 1 ? 1 : 0));
  }

  #ordinalOf(ip: Ip): number | undefined {
    if (!this.#pass(ip)) return undefined;
    const result = this.#mark("pool_ordinal", this.#core.exports.pool_ordinal(this.#handle));
    return result === Status.OUTSIDE ? undefined : result;
  }

  /** Returns the ordinals of a range; undefined unless all of it lies in the window. */
  #runOf({ first, last }: Range): { readonly start: number; readonly count: number } | undefined {
    const start = this.#ordinalOf(first);
    const end = this.#ordinalOf(last);
    if (start === undefined || end === undefined) return undefined;
    const count = end - start + 1;
    // Ordinals are contiguous even where addresses have a gap.
    return BigInt(count) === last.value - first.value + 1n ? { start, count } : undefined;
  }

  /** Writes the address into the exchange buffer. Returns false if its family is not the pool's. */
  #pass(ip: Ip): boolean {
    if (ip.family !== this.#family) return false;
    writeIp(this.#core.reserve(16), 0, ip);
    return true;
  }

  /** Returns the result; "outside" is not a failure. */
  #mark(operation: string, result: number): number {
    return result === Status.OUTSIDE ? result : this.#core.check(operation, result);
  }
}

/** Packs the lowest bits of the first `count` bytes: that of byte i becomes bit i mod 8 of byte i / 8. */
function packBits(bytes: DataView, count: number): Uint8Array {
  const packed = new Uint8Array(Math.ceil(count / 8));
  for (let at = 0; at < count; at++) packed[at >> 3] = (packed[at >> 3] ?? 0) | ((bytes.getUint8(at) & 1) << (at & 7));
  return packed;
}
