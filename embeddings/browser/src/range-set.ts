/**
 * A set of addresses of one family, with text in and out. Made by {@link Core.rangeSet}; lives until {@link
 * RangeSet.drop}, or to the end of the scope with `using`.
 * Effects: the core instance's memory.
 */
import type { CoreModule } from "../../../host/core/module.ts";
import type { RangeSet as RangeSetOfValues } from "../../../host/core/range-set.ts";
import type { Family } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { formatRange } from "../../../host/net/range.ts";
import { askEach, requireIp } from "./text.ts";

export class RangeSet implements Disposable {
  readonly #core: CoreModule;
  /** The same set, with addresses as `Ip` values and packed bytes. */
  readonly values: RangeSetOfValues;

  private constructor(core: CoreModule, values: RangeSetOfValues) {
    this.#core = core;
    this.values = values;
  }

  /** @internal */
  static adopt(core: CoreModule, values: RangeSetOfValues): RangeSet {
    return new RangeSet(core, values);
  }

  get family(): Family {
    return this.values.family;
  }

  /** For `core.raw`. */
  get handle(): number {
    return this.values.handle;
  }

  /** Whether the address is in the set; one of the other family never is. */
  contains(address: string): boolean {
    return this.values.contains(requireIp(address));
  }

  /** {@link contains} for each address. */
  containsMany(addresses: readonly string[]): boolean[] {
    return askEach(addresses, this.family, (packed) => this.values.containsMany(packed));
  }

  /** Whether every address of the other set is in this one. */
  includes(other: RangeSet): boolean {
    return this.values.includes(other.values);
  }

  /** Whether the sets share an address. */
  overlaps(other: RangeSet): boolean {
    return this.values.overlaps(other.values);
  }

  /** The addresses of either set: a new set, as with the next two. Throws CoreError when the families differ. */
  union(other: RangeSet): RangeSet {
    return new RangeSet(this.#core, this.values.union(other.values));
  }

  /** The addresses of both sets. */
  intersect(other: RangeSet): RangeSet {
    return new RangeSet(this.#core, this.values.intersect(other.values));
  }

  /** The addresses of this set that are not in the other. */
  subtract(other: RangeSet): RangeSet {
    return new RangeSet(this.#core, this.values.subtract(other.values));
  }

  /** The number of {@link ranges}. */
  count(): number {
    return this.values.count();
  }

  /** The number of addresses, up to 2^128. */
  size(): bigint {
    return this.values.size();
  }

  /** The fewest ranges, ascending: "10.0.0.1-10.0.0.9", or one address. */
  ranges(): string[] {
    return this.values.ranges().map(formatRange);
  }

  /** The fewest prefixes that cover exactly this set, ascending. */
  prefixes(): string[] {
    return this.values.prefixes().map(formatPrefix);
  }

  /** Gives the memory back; every later use is a CoreError. */
  drop(): void {
    this.values.drop();
  }

  [Symbol.dispose](): void {
    this.drop();
  }

  /** @internal */
  inCopy(original: CoreModule, copy: CoreModule): RangeSet {
    if (original !== this.#core) throw new TypeError("The set lives in another instance of the core");
    return new RangeSet(copy, this.values.inClone(copy));
  }
}
