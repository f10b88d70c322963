/** Finds the pools or Subnets that share addresses, in one pass over the sorted ends of all ranges. */

import { type Family, formatIp } from "../../net/ip.ts";
import type { Range } from "../../net/range.ts";
import { MAX_EXAMPLES } from "../examples.ts";

/** The ranges of one owner are disjoint, ascending and of one family. */
export interface RangeOwner {
  readonly name: string;
  readonly addressSpace: string;
  readonly ranges: readonly Range[];
}

export interface Sharing {
  /** How many of the owner's addresses others have as well. */
  readonly count: bigint;
  /** The lowest of them. */
  readonly first: string;
  /** Names of some of the others. */
  readonly others: readonly string[];
  /** Whether there are more. */
  readonly hasMore: boolean;
}

/** Returns only owners that share addresses. */
export function planOverlap(owners: readonly RangeOwner[]): ReadonlyMap<string, Sharing> {
  const groups = Map.groupBy(
    owners.filter(({ ranges }) => ranges.length > 0),
    ({ addressSpace, ranges: [range] }) => `${range?.first.family} ${addressSpace}`,
  );
  return new Map([...groups.values()].filter((group) => group.length > 1).flatMap((group) => [...sharingIn(group)]));
}

interface End {
  readonly at: bigint;
  readonly owner: string;
  readonly opens: boolean;
}

interface Found {
  count: bigint;
  first: bigint | undefined;
  others: Set<string>;
  /** How many addresses were shared by any owners before the open range began. */
  before: bigint;
}

/** One more name than is shown, to know that there are more. */
const NAMES = MAX_EXAMPLES + 1;

function sharingIn(owners: readonly RangeOwner[]): Map<string, Sharing> {
  const family = owners[0]?.ranges[0]?.first.family ?? 4;
  const walk = new Sweep();
  for (const end of endsOf(owners)) walk.step(end);
  const sharing = [...walk.found].flatMap(([name, found]) => {
    const one = sharingOf(found, family);
    return one === undefined ? [] : [[name, one] as const];
  });
  return new Map(sharing);
}

function endsOf(owners: readonly RangeOwner[]): End[] {
  const ends = owners.flatMap(({ name, ranges }) =>
    ranges.flatMap(({ first, last }): End[] => [
      { at: first.value, owner: name, opens: true },
      { at: last.value + 1n, owner: name, opens: false },
    ]),
  );
  // Ranges that end at a position are closed before others are opened there.
  return ends.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : Number(a.opens) - Number(b.opens)));
}

/** Steps from one end of a range to the next. */
class Sweep {
  readonly found = new Map<string, Found>();
  /** Owners with an open range. */
  readonly #open = new Set<string>();
  /** Of those, the ones that still collect names of others: a few at most, since all open owners share the position. */
  readonly #curious = new Set<string>();
  #at = 0n;
  /** How many addresses before the position belong to two or more owners. */
  #shared = 0n;

  step({ at, owner, opens }: End): void {
    if (this.#open.size > 1) this.#shared += at - this.#at;
    this.#at = at;
    if (opens) this.#enter(owner);
    else this.#leave(owner);
  }

  #enter(owner: string): void {
    const found = this.found.get(owner) ?? { count: 0n, first: undefined, others: new Set(), before: 0n };
    this.found.set(owner, found);
    found.before = this.#shared;
    for (const other of this.#open) {
      if (found.others.size >= NAMES) break;
      found.others.add(other);
      found.first ??= this.#at;
    }
    for (const name of this.#curious) {
      const one = this.found.get(name);
      one?.others.add(owner);
      if (one !== undefined) one.first ??= this.#at;
      if (one === undefined || one.others.size >= NAMES) this.#curious.delete(name);
    }
    this.#open.add(owner);
    if (found.others.size < NAMES) this.#curious.add(owner);
  }

  #leave(owner: string): void {
    const found = this.found.get(owner);
    if (found !== undefined) found.count += this.#shared - found.before;
    this.#open.delete(owner);
    this.#curious.delete(owner);
  }
}

function sharingOf({ count, first, others }: Found, family: Family): Sharing | undefined {
  if (count === 0n || first === undefined) return undefined;
  const names = [...others].sort();
  return {
    count,
    first: formatIp({ family, value: first }),
    others: names.slice(0, MAX_EXAMPLES),
    hasMore: names.length > MAX_EXAMPLES,
  };
}
