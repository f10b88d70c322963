/** Finds the pools or Subnets that share addresses: looks for them if the core says that any do. */

import { areContested, joinRanges, spansOf } from "../core/spans.ts";
import { formatIp } from "../net/ip.ts";
import type { AddressSpec } from "./fields/address-spec.ts";
import { piecesIn } from "./range-search.ts";

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

function sharingIn(owners: readonly RangeOwner[]): (readonly [name: string, sharing: Sharing])[] {
  const found = new Map<RangeOwner, { count: bigint; readonly first: bigint; readonly others: Set<string> }>();
  for (const { start, end, values } of piecesIn(owners.map((owner) => ({ ranges: owner.ranges, value: owner })))) {
    if (values.length < 2) continue;
    for (const owner of values) {
      const each = found.getOrInsertComputed(owner, () => ({ count: 0n, first: start, others: new Set<string>() }));
      each.count += end - start;
      for (const other of values.slice(0, NAMES + 1))
        if (other !== owner && each.others.size < NAMES) each.others.add(other.name);
    }
  }
  return [...found].map(([{ name, family }, { count, first, others }]) => {
    const names = [...others].sort();
    const sharing = { count, first: formatIp({ family, value: first }), others: names.slice(0, MAX_NAMED) };
    return [name, { ...sharing, hasMore: names.length > MAX_NAMED }] as const;
  });
}

/** Returns a sentence without its subject: pools may share addresses, because each is still allocated once. */
export function describeSharing(kind: "IPPools" | "Subnets", { count, first, others, hasMore }: Sharing): string {
  const names = `${others.map((name) => `"${name}"`).join(", ")}${hasMore ? " and others" : ""}`;
  const what = count === 1n ? `1 address, from ${first} on, is` : `${count} addresses, from ${first} on, are`;
  return `${what} also in ${kind} ${names}${kind === "IPPools" ? "; each address is still given out once" : ""}`;
}
