/**
 * Counts each namespace's addresses, and compares its retained ones with those of its pods: a StatefulSet of a million
 * replicas, whose pods are made by hand one after the other, or as many IPAMClaims, cannot fill a pool.
 */
import { type Change, valueAfter } from "../kubernetes/mirror.ts";
import { byName } from "../lib/order.ts";
import { type CachedAllocation, countedFor } from "./cached-allocation.ts";

/** Addresses that a namespace may retain whatever it runs. @limit */
export const RETAINED_FREELY = 8;

/** The retained addresses may be this multiple of the most addresses that its pods have had at once. */
const RETAINED_TIMES = 2;

/** Cooling addresses belong to no namespace. */
interface Share {
  count: number;
  /** In use by pods; their maximum since this process leads; and the count at its start. */
  bound: number;
  most: number;
  before: number;
  /** Names of retained addresses, in the order of their retention. */
  readonly kept: Set<string>;
}

/** Returns how many more addresses the namespace may retain; negative beyond the limit. */
function roomIn({ kept, most, before }: Share): number {
  return Math.max(RETAINED_FREELY, RETAINED_TIMES * most, before) - kept.size;
}

/** Returns the names of addresses that are retained beyond the limit. */
function excessOf(share: Share): readonly string[] {
  return [...share.kept].slice(0, Math.max(0, -roomIn(share)));
}

const NOTHING: Share = { kept: new Set(), count: 0, bound: 0, most: 0, before: 0 };

export class NamespaceShares {
  readonly #shares = new Map<string, Share>();

  /** `allocations`: all at the start of leadership. */
  constructor(allocations: Iterable<CachedAllocation>) {
    for (const each of allocations) this.#count(each, 1);
    for (const share of this.#shares.values()) share.before = share.count;
  }

  /** Returns the name of an address that is retained beyond the limit since the change, if there is one. */
  apply(change: Change<CachedAllocation>): string | undefined {
    const { before } = change;
    const now = valueAfter(change);
    const isKept = now?.spec.state === "Kept";
    // In a new list, the record of another namespace may have its name.
    const isSame =
      isKept && before?.spec.state === "Kept" && countedFor(before)?.namespace === countedFor(now)?.namespace;
    if (isSame) return undefined;
    if (before !== undefined) this.#count(before, -1);
    const share = now && this.#count(now, 1);
    return isKept && share !== undefined ? excessOf(share).at(-1) : undefined;
  }

  /** Returns how many more addresses the namespace may retain or have. `limit`: of all its addresses, 0 for none. */
  roomOf(namespace: string, limit: number): number {
    const share = this.#shares.get(namespace) ?? NOTHING;
    return Math.min(roomIn(share), (limit || Number.POSITIVE_INFINITY) - share.count);
  }

  isExcess(allocation: CachedAllocation): boolean {
    const share = this.#shares.get(countedFor(allocation)?.namespace ?? "");
    return share !== undefined && excessOf(share).includes(allocation.name);
  }

  /** Returns the namespaces with at least `limit` addresses, by name. */
  full(limit: number): { readonly name: string; readonly addresses: number }[] {
    const full = [...this.#shares].flatMap(([name, { count }]) => (count < limit ? [] : [{ name, addresses: count }]));
    return full.sort(byName);
  }

  #count(allocation: CachedAllocation, step: 1 | -1): Share | undefined {
    const { namespace } = countedFor(allocation) ?? {};
    if (namespace === undefined) return undefined;
    const share = this.#shares.getOrInsertComputed(namespace, () => ({ ...NOTHING, kept: new Set<string>() }));
    const { name, spec } = allocation;
    share.count += step;
    if (share.count === 0) this.#shares.delete(namespace);
    if (spec.state === "Kept") share.kept[step === 1 ? "add" : "delete"](name);
    if (spec.state === "Bound") share.bound += step;
    share.most = Math.max(share.most, share.bound);
    return share;
  }
}
