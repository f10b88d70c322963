/** Finds whether a member has another address instead: its pod runs on another node, with addresses of other pools. */

import { areTwoMachines } from "../../resources/machine.ts";
import { isSameMember, memberKey } from "../../resources/member.ts";
import type { CachedAllocation, CachedHolder } from "../cached-allocation.ts";
import type { Caches } from "../types.ts";
import { lastHolder } from "./plan-collection.ts";

export class Replacements {
  readonly #caches: Pick<Caches, "allocations">;
  /** Bound allocations by member. */
  #bound: ReadonlyMap<string | undefined, readonly CachedAllocation[]> | undefined;

  constructor(caches: Pick<Caches, "allocations">) {
    this.#caches = caches;
  }

  /** Returns the names of the replacements in the cache. */
  find(object: CachedAllocation): readonly string[] {
    return this.#boundOf(object).flatMap((other) => (isReplacement(object, other) ? [other.name] : []));
  }

  /** Returns the names of all addresses of the member's pods, none if the cache has one of the NIC and family. */
  findOthers(object: CachedAllocation): readonly string[] {
    const { workload, ip } = object.spec;
    const others = this.#boundOf(object);
    const isSame = ({ spec }: CachedAllocation): boolean =>
      spec.ip.family === ip.family && spec.holders.some(({ ifName }) => ifName === workload?.ifName);
    return others.some(isSame) ? [] : others.map(({ name }) => name);
  }

  #boundOf({ spec: { workload } }: CachedAllocation): readonly CachedAllocation[] {
    if (workload === undefined) return [];
    const all = Iterator.from(this.#caches.allocations.items.values());
    const bound = all.filter(({ spec }) => spec.state === "Bound" && spec.workload !== undefined);
    this.#bound ??= Map.groupBy(bound, ({ spec }) => spec.workload && memberKey(spec.workload));
    return this.#bound.get(memberKey(workload)) ?? [];
  }
}

/** Returns whether the other address is bound for the same member, NIC and family on another node or machine. */
export function isReplacement(object: CachedAllocation, { name, deleting, spec }: CachedAllocation): boolean {
  const holder = lastHolder(object);
  const { workload, ip } = object.spec;
  const ifName = workload?.ifName ?? holder?.ifName;
  if (name === object.name || deleting || spec.state !== "Bound" || spec.ip.family !== ip.family) return false;
  if (!isSameMember(workload, spec.workload)) return false;
  const isElsewhere = (other: CachedHolder): boolean => other.node !== holder?.node || areTwoMachines(other, holder);
  return spec.holders.some((other) => other.ifName === ifName && isElsewhere(other));
}
