/**
 * Finds the pools or Subnets that share addresses: in one pass over the sorted ends of all ranges, if the core says
 * that any do.
 */

import { areContested, spansOf } from "../../core/spans.ts";
import { type Family, formatIp } from "../../net/ip.ts";
import type { Range } from "../../net/range.ts";
import { MAX_EXAMPLES } from "../examples.ts";

/** The ranges of one owner are disjoint and ascending. */
export interface RangeOwner {
  readonly name: string;
  readonly addressSpace: string;
  readonly family: Family;
  readonly ranges: readonly Range[];
}

export interface Sharing {
  /** Number of the owner's addresses that others have as well. */
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
  const groups = Map.groupBy(owners, ({ addressSpace, family }) => `${family} ${addressSpace}`);
  const contested = [...groups.values()].filter((group) =>
    areContested(group.flatMap(({ ranges }) => spansOf(ranges))),
  );
  return new Map(contested.flatMap(sharingIn));
}

/** An owner's state while the ends are walked. */
interface Found {
  readonly owner: RangeOwner;
  count: bigint;
  first: bigint | undefined;
  readonly others: Set<string>;
  /** Number of addresses that any owners shared before the open range began. */
  before: bigint;
}

interface End {
  readonly at: bigint;
  readonly of: Found;
  readonly opens: boolean;
}

/** One more name than is shown, to know that there are more. */
const NAMES = MAX_EXAMPLES + 1;

function sharingIn(owners: readonly RangeOwner[]): (readonly [name: string, sharing: Sharing])[] {
  const all = owners.map((owner): Found => ({ owner, count: 0n, first: undefined, others: new Set(), before: 0n }));
  const walk = new Sweep();
  for (const end of endsOf(all)) walk.step(end);
  return all.flatMap(({ owner, count, first, others }) => {
    if (first === undefined) return [];
    const names = [...others].sort();
    const sharing = {
      count,
      first: formatIp({ family: owner.family, value: first }),
      others: names.slice(0, MAX_EXAMPLES),
      hasMore: names.length > MAX_EXAMPLES,
    };
    return [[owner.name, sharing] as const];
  });
}

function endsOf(all: readonly Found[]): End[] {
  const ends = all.flatMap((of) =>
    of.owner.ranges.flatMap(({ first, last }): End[] => [
      { at: first.value, of, opens: true },
      { at: last.value + 1n, of, opens: false },
    ]),
  );
  // Ranges that end at a position are closed before others are opened there.
  return ends.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : Number(a.opens) - Number(b.opens)));
}

/** Steps from one end of a range to the next. */
class Sweep {
  /** Owners with an open range. */
  readonly #open = new Set<Found>();
  /**
   * Owners of `#open` that still collect names of others: a few at most, since all that are open share the position.
   */
  readonly #curious = new Set<Found>();
  #at = 0n;
  /** Number of addresses before the position that belong to two or more owners. */
  #shared = 0n;

  step({ at, of, opens }: End): void {
    if (this.#open.size > 1) this.#shared += at - this.#at;
    this.#at = at;
    if (opens) this.#enter(of);
    else this.#leave(of);
  }

  #enter(found: Found): void {
    found.before = this.#shared;
    for (const { owner } of this.#open) {
      if (found.others.size >= NAMES) break;
      found.others.add(owner.name);
      found.first ??= this.#at;
    }
    for (const other of this.#curious) {
      other.others.add(found.owner.name);
      other.first ??= this.#at;
      if (other.others.size >= NAMES) this.#curious.delete(other);
    }
    this.#open.add(found);
    if (found.others.size < NAMES) this.#curious.add(found);
  }

  #leave(found: Found): void {
    found.count += this.#shared - found.before;
    this.#open.delete(found);
    this.#curious.delete(found);
  }
}
