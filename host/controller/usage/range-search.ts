/** Finds the sets of ranges that contain an address, with one binary search. */
import type { Ip } from "../../net/ip.ts";
import type { Range } from "../../net/range.ts";

/** Ranges of one family. Those of one entry are disjoint. */
interface RangesEntry<T> {
  readonly ranges: readonly Range[];
  readonly value: T;
}

/** Divides the addresses into segments within which the sets do not change. */
class RangesIndex<T> {
  readonly #starts: bigint[] = [];
  readonly #values: (readonly T[])[] = [];

  /** Costs the sorting, and one list per end of a range. */
  constructor(entries: readonly RangesEntry<T>[]) {
    const ends = entries.flatMap(({ ranges, value }) =>
      ranges.flatMap(({ first, last }) => [
        { at: first.value, value, opens: true },
        { at: last.value + 1n, value, opens: false },
      ]),
    );
    ends.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
    // How many ranges of an entry are open: one that ends may touch one that begins.
    const open = new Map<T, number>();
    for (const [index, { at, value, opens }] of ends.entries()) {
      const count = (open.get(value) ?? 0) + (opens ? 1 : -1);
      if (count === 0) open.delete(value);
      else open.set(value, count);
      if (ends[index + 1]?.at === at) continue;
      this.#starts.push(at);
      this.#values.push([...open.keys()]);
    }
  }

  find({ value }: Ip): readonly T[] {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#starts[middle] ?? 0n) <= value) low = middle + 1;
      else high = middle;
    }
    return this.#values[low - 1] ?? [];
  }
}

/** One index per address space and family. */
export class SpacesIndex<T> {
  readonly #indexes: ReadonlyMap<string, RangesIndex<T>>;

  constructor(entries: readonly (RangesEntry<T> & { readonly space: string })[]) {
    const groups = Map.groupBy(
      entries.filter(({ ranges }) => ranges.length > 0),
      ({ space, ranges: [range] }) => keyOf(space, range?.first.family ?? 4),
    );
    this.#indexes = new Map([...groups].map(([key, group]) => [key, new RangesIndex(group)]));
  }

  find(space: string, ip: Ip): readonly T[] {
    return this.#indexes.get(keyOf(space, ip.family))?.find(ip) ?? [];
  }
}

function keyOf(space: string, family: number): string {
  return `${family} ${space}`;
}
