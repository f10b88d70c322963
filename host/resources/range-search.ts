/** Finds the sets of ranges that contain an address, with one binary search. */
import { countLeading } from "../lib/search.ts";
import type { Family, Ip } from "../net/ip.ts";
import type { Range } from "../net/range.ts";

/** Ranges of one family. Those of one entry are disjoint. */
interface RangesEntry<T> {
  readonly ranges: readonly Range[];
  readonly value: T;
}

interface SpaceEntry<T> extends RangesEntry<T> {
  readonly space: string;
}

/** Addresses of the same entries; `end` is not one of them. */
interface Piece<T> {
  readonly start: bigint;
  readonly end: bigint;
  readonly values: readonly T[];
}

/** Yields the pieces within which the entries do not change. Costs the sorting, and one list per end of a range. */
export function* piecesIn<T>(entries: readonly RangesEntry<T>[]): Iterable<Piece<T>> {
  const ends = entries.flatMap(({ ranges, value }) =>
    ranges.flatMap(({ first, last }) => [
      { at: first.value, value, opens: true },
      { at: last.value + 1n, value, opens: false },
    ]),
  );
  ends.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  // Number of an entry's open ranges: a range may start where another ends.
  const open = new Map<T, number>();
  for (const [index, { at, value, opens }] of ends.entries()) {
    const count = (open.get(value) ?? 0) + (opens ? 1 : -1);
    if (count === 0) open.delete(value);
    else open.set(value, count);
    const end = ends[index + 1]?.at;
    if (end !== at) yield { start: at, end: end ?? at, values: [...open.keys()] };
  }
}

class RangesIndex<T> {
  readonly #starts: bigint[] = [];
  readonly #values: (readonly T[])[] = [];

  constructor(entries: readonly RangesEntry<T>[]) {
    for (const { start, values } of piecesIn(entries)) {
      this.#starts.push(start);
      this.#values.push(values);
    }
  }

  find({ value }: Ip): readonly T[] {
    return this.#values[countLeading(this.#starts, (start) => start <= value) - 1] ?? [];
  }
}

/** One index per address space and family. */
export class SpacesIndex<T> {
  /** By family, then by address space: a search makes no key. */
  readonly #indexes: Readonly<Record<Family, ReadonlyMap<string, RangesIndex<T>>>>;

  constructor(entries: readonly SpaceEntry<T>[]) {
    const { 4: v4 = [], 6: v6 = [] } = Object.groupBy(
      entries.filter(({ ranges }) => ranges.length > 0),
      ({ ranges: [range] }) => range?.first.family ?? 4,
    );
    this.#indexes = { 4: indexBySpace(v4), 6: indexBySpace(v6) };
  }

  find(space: string, ip: Ip): readonly T[] {
    return this.#indexes[ip.family].get(space)?.find(ip) ?? [];
  }
}

function indexBySpace<T>(entries: readonly SpaceEntry<T>[]): ReadonlyMap<string, RangesIndex<T>> {
  const groups = Map.groupBy(entries, ({ space }) => space);
  return new Map([...groups].map(([space, group]) => [space, new RangesIndex(group)]));
}
