/**
 * Addresses in use that have left the pool that gave them: an agent claimed them while the controller, which did not
 * know of that yet, took them back. Another pool may have them by now, whose pods cannot use them.
 */
import { type Spans, spansOf, withoutSpans } from "../../core/spans.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { rangeContains } from "../../net/range.ts";
import { allocationName } from "../../resources/ip-allocation.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import type { ControlledPool } from "../objects.ts";
import type { Caches } from "../types.ts";
import type { StrayAddress } from "./model.ts";

export class StrayAddresses {
  readonly #caches: Pick<Caches, "allocations" | "pools">;
  /** By the allocation's name. */
  readonly #strays = new Map<string, StrayAddress>();

  /** Looks at all allocations once. */
  constructor(caches: Pick<Caches, "allocations" | "pools">) {
    this.#caches = caches;
    for (const allocation of caches.allocations.items.values()) this.#look(allocation);
  }

  get all(): readonly StrayAddress[] {
    return [...this.#strays.values()];
  }

  /** Returns whether the allocation has become a stray, or was one. */
  allocationChanged(change: Change<CachedAllocation>): boolean {
    if (change.kind === "gone") return this.#strays.delete(change.key);
    const wasStray = this.#strays.has(change.key);
    return this.#look(change.value) || wasStray;
  }

  poolChanged(change: Change<ControlledPool>): void {
    const [before, now] = [change.before, change.kind === "set" ? change.value : undefined].map(generatedOf);
    if (now !== undefined)
      for (const [name, { pool }] of [...this.#strays]) {
        const found = pool === change.key ? this.#caches.allocations.items.get(name) : undefined;
        if (found !== undefined) this.#look(found);
      }
    if (before === undefined) return;
    const { addressSpace, family } = before;
    for (const { first, last } of withoutSpans(spansOf(before.ranges), rangesIn(now)))
      for (let value = first; value <= last; value++) {
        const found = this.#caches.allocations.items.get(allocationName({ family, value }, addressSpace));
        if (found !== undefined) this.#look(found);
      }
  }

  #look(allocation: CachedAllocation): boolean {
    const { name, spec } = allocation;
    const { addressSpace, ip, pool } = spec;
    const isStray = this.#isStray(allocation);
    if (isStray) this.#strays.set(name, { addressSpace, family: ip.family, address: ip.value, pool });
    else this.#strays.delete(name);
    return isStray;
  }

  #isStray({ spec: { pool: name, ip } }: CachedAllocation): boolean {
    const pool = this.#caches.pools.items.get(name);
    if (pool === undefined) return true;
    const spec = generatedOf(pool);
    return spec !== undefined && !spec.ranges.some((range) => rangeContains(range, ip));
  }
}

/** The specification of a generated pool that is valid. */
function generatedOf(pool: ControlledPool | undefined) {
  const spec = pool?.value?.spec;
  return spec?.generated === undefined ? undefined : spec;
}

function rangesIn(spec: ReturnType<typeof generatedOf>): Spans {
  return spec === undefined ? [] : spansOf(spec.ranges);
}
