/**
 * A pool of addresses, with text in and out: which are used, which is free next. Made by {@link Core.createPool};
 * lives until {@link Pool.drop}, or to the end of the scope with `using`. Addresses of the other family are outside;
 * an IPv4-mapped one (::ffff:10.0.0.1) is IPv6. Text that is no address is a TypeError.
 * Effects: the core instance's memory.
 */
import type { CoreModule } from "../../../host/core/module.ts";
import type { AllocationOrder, Pool as PoolOfValues } from "../../../host/core/pool.ts";
import type { PoolCounts } from "../../../host/core/pool-shape.ts";
import { type Family, formatIp, type Ip } from "../../../host/net/ip.ts";
import { formatRange } from "../../../host/net/range.ts";
import { RangeSet } from "./range-set.ts";
import { askEach, packFamily, requireIp, requireRange, unpack } from "./text.ts";

function textOf(ip: Ip | undefined): string | undefined {
  return ip === undefined ? undefined : formatIp(ip);
}

export class Pool implements Disposable {
  readonly #core: CoreModule;
  /** The same pool, with addresses as `Ip` values and packed bytes. */
  readonly values: PoolOfValues;

  private constructor(core: CoreModule, values: PoolOfValues) {
    this.#core = core;
    this.values = values;
  }

  /** @internal */
  static adopt(core: CoreModule, values: PoolOfValues): Pool {
    return new Pool(core, values);
  }

  get family(): Family {
    return this.values.family;
  }

  /** For `core.raw`; {@link edit} to the other family gives the pool another one. */
  get handle(): number {
    return this.values.handle;
  }

  /** Whether the address is allocatable: in a range and not masked. */
  contains(address: string): boolean {
    return this.values.contains(requireIp(address));
  }

  /** {@link contains} for each address. */
  containsMany(addresses: readonly string[]): boolean[] {
    return askEach(addresses, this.family, (packed) => this.values.containsMany(packed));
  }

  /** Whether the address is used. */
  test(address: string): boolean {
    return this.values.test(requireIp(address));
  }

  /** {@link test} for each address. */
  testMany(addresses: readonly string[]): boolean[] {
    return askEach(addresses, this.family, (packed) => this.values.testMany(packed));
  }

  /**
   * The first free address at or after ordinal `seed` modulo the window, wrapping once; undefined when none is free.
   */
  findFree(seed = 0): string | undefined {
    return textOf(this.values.findFree(seed));
  }

  /**
   * The first free address in hashed order over all addresses, those beyond the window too. `seed` has up to 128 bits.
   */
  findFreeWide(seed: bigint): string | undefined {
    return textOf(this.values.findFreeWide(seed));
  }

  /**
   * `count` free addresses of the window that follow one another, as a range; the first is a multiple of 2^alignBits.
   */
  findFreeRun(count: number, alignBits = 0, seed = 0): string | undefined {
    const run = this.values.findFreeRun(count, alignBits, seed);
    return run === undefined ? undefined : formatRange(run);
  }

  /** Marks the next free address used, or finds that none is free. `seed`, any u32, is for "HASHED". */
  allocate(order: AllocationOrder, seed = 0): string | undefined {
    return textOf(this.values.allocate(order, seed));
  }

  /** {@link allocate} so many times; fewer when no more are free. */
  allocateMany(count: number, order: AllocationOrder, seed = 0): string[] {
    return unpack(this.values.allocateMany(count, order, seed), this.family);
  }

  /** Marks an address used; a masked one too. */
  claim(address: string): "claimed" | "taken" | "outside" {
    return this.values.claim(requireIp(address));
  }

  /** Marks an address not used. */
  release(address: string): "released" | "free" | "outside" {
    return this.values.release(requireIp(address));
  }

  /** Marks addresses used, as far as they are not outside. How many are newly marked. */
  claimMany(addresses: readonly string[]): number {
    return this.values.claimMany(packFamily(addresses.map(requireIp), this.family));
  }

  /** Marks addresses not used. How many were used. */
  releaseMany(addresses: readonly string[]): number {
    return this.values.releaseMany(packFamily(addresses.map(requireIp), this.family));
  }

  /** Marks a range of the window used, all of it or nothing: "taken" when one address is used or masked. */
  claimRun(range: string): "claimed" | "taken" | "outside" {
    return this.values.claimRun(requireRange(range));
  }

  /** Marks a range of the window not used. How many of its addresses were used. */
  releaseRun(range: string): number | "outside" {
    return this.values.releaseRun(requireRange(range));
  }

  /** From now on remembers the order in which addresses of the window become free, for "LEAST_RECENTLY_FREED". */
  trackFreed(): void {
    this.values.trackFreed();
  }

  counts(): PoolCounts {
    return this.values.counts();
  }

  /** Free addresses in each block of 4,096 ordinals of the window; the last block may be shorter. */
  freePerBlock(): Uint16Array {
    return this.values.freePerBlock();
  }

  /**
   * The used addresses, masked or not: a set that the caller drops, as the next two. Throws CoreError above 2^20 runs.
   */
  used(): RangeSet {
    return RangeSet.adopt(this.#core, this.values.used());
  }

  /** A copy of the ranges. */
  ranges(): RangeSet {
    return RangeSet.adopt(this.#core, this.values.ranges());
  }

  /** A copy of the masks, as far as they lie in the ranges. */
  masks(): RangeSet {
    return RangeSet.adopt(this.#core, this.values.masks());
  }

  /**
   * Gives the pool other ranges and masks. What is used stays used wherever it is in the new ranges; the rest is
   * forgotten.
   */
  edit(ranges: readonly string[], masked: readonly string[] = []): void {
    this.values.edit({ ranges: ranges.map(requireRange), masked: masked.map(requireRange) });
  }

  /**
   * Returns the used addresses, as bytes for {@link load} of a pool with the same ranges. Masks and the order of
   * release are not in it.
   */
  save(): Uint8Array {
    return this.values.save();
  }

  /** Replaces what is used by what {@link save} wrote; on any answer but "loaded" the pool is as before. */
  load(snapshot: Uint8Array): "loaded" | "damaged" | "other version" | "other pool" {
    return this.values.load(snapshot);
  }

  /** Gives the memory back; every later use is a CoreError. */
  drop(): void {
    this.values.drop();
  }

  [Symbol.dispose](): void {
    this.drop();
  }

  /** @internal */
  inCopy(original: CoreModule, copy: CoreModule): Pool {
    if (original !== this.#core) throw new TypeError("The pool lives in another instance of the core");
    return new Pool(copy, this.values.inClone(copy));
  }
}
