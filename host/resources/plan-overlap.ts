/**
 * Finds the pools or Subnets that share addresses: in one pass over the sorted ends of all ranges, if the core says
 * that any do.
 */

import { areContested, joinRanges, spansOf } from "../core/spans.ts";
import { formatIp } from "../net/ip.ts";
import type { AddressSpec } from "./fields/address-spec.ts";

/** Most names of others in a sentence. */
export const MAX_NAMED = 3;

interface RangeOwner extends Pick<AddressSpec, "addressSpace" | "family" | "ranges"> {
  readonly name: string;
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
export function planOverlap(
  all: readonly { readonly name: string; readonly spec: Omit<RangeOwner, "name"> }[],
): ReadonlyMap<string, Sharing> {
  const owners = all.map(({ name, spec: { addressSpace, family, ranges } }): RangeOwner => {
    return { name, addressSpace, family, ranges: joinRanges(ranges, family) };
  });
  const groups = Map.groupBy(owners, ({ addressSpace, family }) => `${family} ${addressSpace}`);
  const contested = [...groups.values()].filter((group) =>
    areContested(group.flatMap(({ ranges }) => spansOf(ranges))),
  );
  return new Map(contested.flatMap(sharingIn));
}

/** One more name than is shown, to know that there are more. */
const NAMES = MAX_NAMED + 1;

/** Steps from one end of a range to the next. */
function sharingIn(owners: readonly RangeOwner[]): (readonly [name: string, sharing: Sharing])[] {
  const all = owners.map((owner) => ({
    owner,
    count: 0n,
    first: undefined as bigint | undefined,
    others: new Set<string>(),
  }));
  const ends = all.flatMap((of) =>
    of.owner.ranges.flatMap(({ first, last }) => [
      { at: first.value, of, opens: true },
      { at: last.value + 1n, of, opens: false },
    ]),
  );
  // Ranges that end at a position are closed before others are opened there.
  ends.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : Number(a.opens) - Number(b.opens)));
  const open = new Set<(typeof all)[number]>();
  let before = 0n;
  for (const { at, of, opens } of ends) {
    if (open.size > 1 && at > before) for (const each of open) each.count += at - before;
    before = at;
    if (!opens) open.delete(of);
    for (const each of opens ? open : []) {
      each.first ??= at;
      of.first ??= at;
      if (each.others.size < NAMES) each.others.add(of.owner.name);
      if (of.others.size < NAMES) of.others.add(each.owner.name);
    }
    if (opens) open.add(of);
  }
  return all.flatMap(({ owner: { name, family }, count, first, others }) => {
    if (first === undefined) return [];
    const names = [...others].sort();
    const sharing = { count, first: formatIp({ family, value: first }), others: names.slice(0, MAX_NAMED) };
    return [[name, { ...sharing, hasMore: names.length > MAX_NAMED }] as const];
  });
}

/** Returns a sentence without its subject: pools may share addresses, because each is still allocated once. */
export function describeSharing(kind: "IPPools" | "Subnets", { count, first, others, hasMore }: Sharing): string {
  const names = `${others.map((name) => `"${name}"`).join(", ")}${hasMore ? " and others" : ""}`;
  const what = count === 1n ? `1 address, from ${first} on, is` : `${count} addresses, from ${first} on, are`;
  return `${what} also in ${kind} ${names}${kind === "IPPools" ? "; each address is still given out once" : ""}`;
}
