/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The package berth-core: an allocator of IP addresses for browsers and Node.js, in WebAssembly, with text in and out:
 * addresses "10.0.0.7", prefixes "10.0.0.0/24", and ranges, which may also be "10.0.0.1-10.0.0.9". Text that is none is
 * a TypeError; misuse, ceilings and refused snapshots are a CoreError; none, taken and outside are results. An address
 * of another family is in no pool and no set; one that is IPv4-mapped is IPv6.
 * Effects: the instance's memory; to open it, one request, or in Node.js one file read.
 */
import { type CoreExports, Status } from "../../host/core/core-exports.ts";
import { CoreModule, openExports, readAddress, readSize, widthOf, writeAddress } from "../../host/core/module.ts";
import { type AllocationOrder, Pool as PoolOfValues } from "../../host/core/pool.ts";
import { createSetHandle, type PoolCounts, type PoolShape } from "../../host/core/pool-shape.ts";
import { type Family, formatIp, type Ip, parseIp } from "../../host/net/ip.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../host/net/prefix.ts";
import { formatRange, parseRange, type Range, rangeOfPrefix } from "../../host/net/range.ts";

export { CoreError } from "../../host/core/core-error.ts";
export * from "../../host/core/core-exports.ts";
export type { AllocationOrder, Family, PoolCounts };

/** Compiles the module beside this one, in browsers and in Node.js. */
async function compileCore(): Promise<WebAssembly.Module> {
  const url = new URL("./berth-core.wasm", import.meta.url);
  // Without an import of node:fs, which bundlers for browsers could not resolve.
  const fs = url.protocol === "file:" ? globalThis.process?.getBuiltinModule("node:fs/promises") : undefined;
  if (fs !== undefined) return WebAssembly.compile(new Uint8Array(await fs.readFile(url)));
  const response = await fetch(url);
  if (!response.ok) throw new Error(`Cannot load ${url.href}: status ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** Returns the exports of an instance in which nothing has been called. */
export async function openRaw(): Promise<CoreExports> {
  return openExports(await compileCore());
}

/** One instance of the core, in which pools and sets live. It belongs to the thread that opened it. */
export class Core {
  readonly #module: CoreModule;

  private constructor(module: CoreModule) {
    this.#module = module;
  }

  static async open(): Promise<Core> {
    return new Core(CoreModule.open(await compileCore()));
  }

  /** The exports, for handles and ordinals. */
  get raw(): CoreExports {
    return this.#module.share();
  }

  /** A pool with nothing used. The ranges are of one family and may overlap; `masked` addresses are never found. */
  createPool(ranges: readonly string[], masked: readonly string[] = []): Pool {
    return new Pool(this.#module, PoolOfValues.create(this.#module, shapeOf(ranges, masked)));
  }

  /** A set of ranges, which may overlap. `family` is for none. */
  rangeSet(ranges: readonly string[], family?: Family): RangeSet {
    const parsed = ranges.map(requireRange);
    const known = family ?? parsed[0]?.first.family ?? 4;
    return new RangeSet(this.#module, known, "set_create", createSetHandle(this.#module, known, parsed));
  }

  prefixFirst(prefix: string): string {
    const { ip, length } = this.#pass(prefix);
    return formatIp(this.#read("prefix_first", this.#module.exports.prefix_first(ip.family, length), ip.family));
  }

  prefixLast(prefix: string): string {
    const { ip, length } = this.#pass(prefix);
    return formatIp(this.#read("prefix_last", this.#module.exports.prefix_last(ip.family, length), ip.family));
  }

  /** The network mask: "255.255.255.0" for 24 in family 4. */
  prefixMask(family: Family, length: number): string {
    return formatIp(this.#read("prefix_mask", this.#module.exports.prefix_mask(family, length), family));
  }

  /** The prefix of the same length that follows; undefined after the last one. */
  prefixNext(prefix: string): string | undefined {
    const { ip, length } = this.#pass(prefix);
    const status = this.#module.exports.prefix_next(ip.family, length);
    if (status === Status.NONE) return undefined;
    return formatPrefix({ ip: this.#read("prefix_next", status, ip.family), length });
  }

  /** Part `index`, from 0, of the prefix split into prefixes of `length`; undefined after the last one. */
  prefixPart(prefix: string, length: number, index: number): string | undefined {
    const whole = this.#pass(prefix);
    const status = this.#module.exports.prefix_part(whole.ip.family, whole.length, length, index);
    if (status === Status.OUTSIDE) return undefined;
    return formatPrefix({ ip: this.#read("prefix_part", status, whole.ip.family), length });
  }

  /** The longest prefix that holds both addresses. */
  prefixCommon(a: string, b: string): string {
    const [one, other] = [requireIp(a), requireIp(b)];
    if (other.family !== one.family) this.#module.check("prefix_common", Status.BAD_FAMILY);
    const view = this.#module.reserve(32);
    writeIp(view, 0, one);
    writeIp(view, widthOf(one.family), other);
    const length = this.#module.check("prefix_common", this.#module.exports.prefix_common(one.family));
    return `${this.prefixFirst(`${a}/${length}`)}/${length}`;
  }

  #pass(text: string): Prefix {
    const prefix = requirePrefix(text);
    writeIp(this.#module.reserve(16), 0, prefix.ip);
    return prefix;
  }

  #read(operation: string, status: number, family: Family): Ip {
    this.#module.check(operation, status);
    return readIp(this.#module.output(), 0, family);
  }
}

/** Lives until {@link drop}, or to the end of the scope with `using`. */
class Held implements Disposable {
  /** @internal */
  readonly module: CoreModule;
  readonly family: Family;
  handle: number;

  /** @internal */
  constructor(module: CoreModule, family: Family, operation: string, handle: number) {
    this.module = module;
    this.family = family;
    this.handle = module.check(operation, handle);
  }

  /** Gives the memory back; every later use is a CoreError. */
  drop(): void {
    this.module.check("drop", this.module.exports.drop(this.handle));
  }

  [Symbol.dispose](): void {
    this.drop();
  }
}

/** A set of addresses of one family. */
export class RangeSet extends Held {
  /** The addresses of either set: a new set, as with the next two. */
  union(other: RangeSet): RangeSet {
    return this.#combine("set_union", other);
  }

  intersect(other: RangeSet): RangeSet {
    return this.#combine("set_intersect", other);
  }

  subtract(other: RangeSet): RangeSet {
    return this.#combine("set_subtract", other);
  }

  overlaps(other: RangeSet): boolean {
    return this.#ask("set_overlaps", other) === 1;
  }

  /** Whether every address of the other set is in this one. */
  includes(other: RangeSet): boolean {
    return this.#ask("set_includes", other) === 1;
  }

  contains(address: string): boolean {
    const ip = requireIp(address);
    if (ip.family !== this.family) return false;
    writeIp(this.module.reserve(16), 0, ip);
    return this.#call("set_contains") === 1;
  }

  size(): bigint {
    this.#call("set_size");
    return readSize(this.module.output(), 0);
  }

  /** The fewest ranges, ascending: "10.0.0.1-10.0.0.9", or one address. */
  ranges(): string[] {
    const width = widthOf(this.family);
    return this.#list("set_ranges", (view, at) => {
      const [first, last] = [2 * at, 2 * at + 1].map((each) => readIp(view, each * width, this.family)) as [Ip, Ip];
      return formatRange({ first, last });
    });
  }

  /** The fewest prefixes that cover exactly this set, ascending. */
  prefixes(): string[] {
    const width = widthOf(this.family);
    return this.#list("set_prefixes", (view, at) => {
      const start = at * (width + 1);
      return formatPrefix({ ip: readIp(view, start, this.family), length: view.getUint8(start + width) });
    });
  }

  #call(name: "set_contains" | "set_prefixes" | "set_ranges" | "set_size"): number {
    return this.module.check(name, this.module.exports[name](this.handle));
  }

  #list(name: "set_prefixes" | "set_ranges", read: (view: DataView, at: number) => string): string[] {
    const count = this.#call(name);
    const view = this.module.output();
    return Array.from({ length: count }, (_, at) => read(view, at));
  }

  #ask(name: `set_${"includes" | "intersect" | "overlaps" | "subtract" | "union"}`, other: RangeSet): number {
    if (other.module !== this.module) throw new TypeError("The two sets live in two instances of the core");
    return this.module.check(name, this.module.exports[name](this.handle, other.handle));
  }

  #combine(name: "set_intersect" | "set_subtract" | "set_union", other: RangeSet): RangeSet {
    return new RangeSet(this.module, this.family, name, this.#ask(name, other));
  }
}

/** Addresses, each used or not, masked or not. */
export class Pool extends Held {
  readonly #values: PoolOfValues;

  /** @internal */
  constructor(module: CoreModule, values: PoolOfValues) {
    super(module, values.family, "pool_create", values.handle);
    this.#values = values;
  }

  /** Gives the pool another shape. Used marks outside it are forgotten. */
  edit(ranges: readonly string[], masked: readonly string[] = []): void {
    this.#values.edit(shapeOf(ranges, masked));
    this.handle = this.#values.handle;
  }

  /** Marks the next free address used; undefined if none is free. `seed`, any u32, is for "HASHED". */
  allocate(order: AllocationOrder = "ASCENDING", seed = 0): string | undefined {
    return textOf(this.#values.allocate(order, seed));
  }

  /** The first free address at or after ordinal `seed` modulo the window, wrapping once. */
  findFree(seed = 0): string | undefined {
    return textOf(this.#values.findFree(seed));
  }

  /** The first free address, beyond the window too, from a seed of up to 128 bits on. */
  findFreeWide(seed: bigint): string | undefined {
    writeIp(this.module.reserve(16), 0, { family: 6, value: seed });
    const status = this.module.exports.pool_find_wide(this.handle);
    if (status === Status.NONE) return undefined;
    this.module.check("pool_find_wide", status);
    return formatIp(readIp(this.module.output(), 0, this.family));
  }

  /** Whether the address is in a range and not masked. */
  contains(address: string): boolean {
    return this.#values.contains(requireIp(address));
  }

  test(address: string): boolean {
    return this.#values.test(requireIp(address));
  }

  /** Marks an address used; a masked one too. */
  claim(address: string): "claimed" | "taken" | "outside" {
    return this.#values.claim(requireIp(address));
  }

  release(address: string): "released" | "free" | "outside" {
    return this.#values.release(requireIp(address));
  }

  /** From now on remembers the order of releases, for "LEAST_RECENTLY_FREED". */
  trackFreed(): void {
    this.module.check("pool_track_freed", this.module.exports.pool_track_freed(this.handle));
  }

  counts(): PoolCounts {
    return this.#values.counts();
  }

  /** The used addresses, masked or not: a set that the caller drops. */
  used(): RangeSet {
    return new RangeSet(this.module, this.family, "pool_used", this.module.exports.pool_used(this.handle));
  }

  /** The used addresses as bytes for {@link load}, without masks and the order of releases. */
  save(): Uint8Array {
    return this.#values.save();
  }

  /** Replaces the used addresses by those saved from a pool with the same ranges. */
  load(snapshot: Uint8Array): void {
    this.module.write(snapshot);
    this.module.check("pool_load", this.module.exports.pool_load(this.handle, snapshot.length));
  }
}

function textOf(ip: Ip | undefined): string | undefined {
  return ip === undefined ? undefined : formatIp(ip);
}

function requireIp(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new TypeError(`Not an IP address: "${text}", wanted one like "10.0.0.7" or "fd00::1"`);
  return ip;
}

function requirePrefix(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix !== undefined) return prefix;
  throw new TypeError(`Not a prefix: "${text}", wanted one like "10.0.0.0/24" or "fd00::/64"`);
}

function requireRange(text: string): Range {
  if (text.includes("/")) return rangeOfPrefix(requirePrefix(text));
  const range = parseRange(text);
  if (range !== undefined) return range;
  throw new TypeError(`Not a range: "${text}", wanted one like "10.0.0.1-10.0.0.9", "10.0.0.0/24" or "10.0.0.7"`);
}

function shapeOf(ranges: readonly string[], masked: readonly string[]): PoolShape {
  return { ranges: ranges.map(requireRange), masked: masked.map(requireRange) };
}

function writeIp(view: DataView, offset: number, { family, value }: Ip): void {
  writeAddress(view, offset, family, value);
}

function readIp(view: DataView, offset: number, family: Family): Ip {
  return { family, value: readAddress(view, offset, family) };
}
