/**
 * Sets of addresses of one family, kept in the core: algebra, membership, size, shortest list of prefixes.
 * Used by whoever compares pools, subnets and reservations. A set lives until {@link RangeSet.drop}, or to the end
 * of the scope with `using`.
 * Effects: the core instance's memory.
 */
import { invariant } from "../lib/invariant.ts";
import type { Family, Ip } from "../net/ip.ts";
import type { Prefix } from "../net/prefix.ts";
import type { Range } from "../net/range.ts";
import { CoreError } from "./core-error.ts";
import { Status } from "./core-exports.ts";
import { readPrefixes, readRanges, readSize, widthOf, writeIp, writeRanges } from "./ip-codec.ts";
import type { CoreModule } from "./module.ts";

/** Creates the set and returns its handle; for host/core itself. The ranges may overlap and stand in any order. */
export function createSetHandle(core: CoreModule, family: Family, ranges: readonly Range[]): number {
  for (const range of ranges) {
    if (range.first.family !== family || range.last.family !== family) {
      throw new CoreError(
        "set_create",
        Status.BAD_FAMILY,
        `a range of IPv${range.first.family} in a set of IPv${family}`,
      );
    }
  }
  writeRanges(core.reserve(ranges.length * 2 * widthOf(family)), family, ranges);
  return core.check("set_create", core.exports.set_create(family, ranges.length), `${ranges.length} ranges`);
}

export class RangeSet implements Disposable {
  readonly family: Family;
  readonly #core: CoreModule;
  readonly #handle: number;

  private constructor(core: CoreModule, family: Family, handle: number) {
    this.#core = core;
    this.family = family;
    this.#handle = handle;
  }

  /** Returns the addresses of the ranges, which may overlap and stand in any order. For {@link PoolSpace.rangeSet}. */
  static create(core: CoreModule, family: Family, ranges: readonly Range[]): RangeSet {
    return new RangeSet(core, family, createSetHandle(core, family, ranges));
  }

  /** Returns the set that an operation of the core has created. Throws CoreError if it failed. For host/core itself. */
  static adopt(core: CoreModule, family: Family, operation: string, handle: number): RangeSet {
    return new RangeSet(core, family, core.check(operation, handle));
  }

  /** Returns whether every address of the other set is in this one. */
  includes(other: RangeSet): boolean {
    return this.#core.check("set_includes", this.#core.exports.set_includes(this.#handle, this.#peer(other))) === 1;
  }

  union(other: RangeSet): RangeSet {
    return this.#derive("set_union", this.#core.exports.set_union(this.#handle, this.#peer(other)));
  }

  intersect(other: RangeSet): RangeSet {
    return this.#derive("set_intersect", this.#core.exports.set_intersect(this.#handle, this.#peer(other)));
  }

  /** Returns the addresses of this set that are not in the other. */
  subtract(other: RangeSet): RangeSet {
    return this.#derive("set_subtract", this.#core.exports.set_subtract(this.#handle, this.#peer(other)));
  }

  /** Returns whether the sets share an address. */
  overlaps(other: RangeSet): boolean {
    return this.#core.check("set_overlaps", this.#core.exports.set_overlaps(this.#handle, this.#peer(other))) === 1;
  }

  contains(ip: Ip): boolean {
    if (ip.family !== this.family) return false;
    writeIp(this.#core.reserve(16), 0, ip);
    return this.#core.check("set_contains", this.#core.exports.set_contains(this.#handle)) === 1;
  }

  /** Returns which addresses, 4 or 16 big-endian bytes each, are in the set: 1 or 0 for each. */
  containsMany(packed: Uint8Array): Uint8Array {
    const count = this.#core.writeAddresses("set_contains_many", this.family, packed);
    this.#core.check("set_contains_many", this.#core.exports.set_contains_many(this.#handle, count));
    return this.#core.read(count);
  }

  /** Returns the number of {@link ranges}. */
  count(): number {
    return this.#core.check("set_count", this.#core.exports.set_count(this.#handle));
  }

  /** Returns the number of addresses. */
  size(): bigint {
    this.#core.check("set_size", this.#core.exports.set_size(this.#handle));
    return readSize(this.#core.output(), 0);
  }

  /** Returns the fewest ranges, ascending; no two touch. */
  ranges(): Range[] {
    const count = this.#core.check("set_ranges", this.#core.exports.set_ranges(this.#handle));
    return readRanges(this.#core.output(), this.family, count);
  }

  /** Returns the fewest prefixes that cover exactly this set, ascending. */
  prefixes(): Prefix[] {
    const count = this.#core.check("set_prefixes", this.#core.exports.set_prefixes(this.#handle));
    return readPrefixes(this.#core.output(), this.family, count);
  }

  /** Frees the memory. Every later use throws CoreError. */
  drop(): void {
    this.#core.check("drop", this.#core.exports.drop(this.#handle));
  }

  [Symbol.dispose](): void {
    this.drop();
  }

  /** The set's handle for the raw exports. */
  get handle(): number {
    return this.#handle;
  }

  /** Returns the same set in a clone of the instance. */
  inClone(core: CoreModule): RangeSet {
    return new RangeSet(core, this.family, this.#handle);
  }

  /** Returns the other set's handle. A handle means nothing in another instance. */
  #peer(other: RangeSet): number {
    invariant(other.#core === this.#core, "The two sets live in two instances of the core");
    return other.#handle;
  }

  #derive(operation: string, handle: number): RangeSet {
    return RangeSet.adopt(this.#core, this.family, operation, handle);
  }
}
