/**
 * The allocations of lost nodes that another node was asked to probe, by the lost node. Kept along: a zone of a thousand nodes would otherwise be a thousand
 * searches through all allocations.
 */
import type { Change } from "../../kubernetes/mirror.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { lostNode } from "./check-allocation.ts";

export class AddressesElsewhere {
  readonly #byNode = new Map<string, Set<string>>();

  constructor(allocations: Iterable<CachedAllocation>) {
    for (const each of allocations) this.#add(each);
  }

  /** Returns the names of the allocations. */
  of(node: string): ReadonlySet<string> {
    return this.#byNode.get(node) ?? new Set();
  }

  apply(change: Change<CachedAllocation>): void {
    if (change.before !== undefined) this.#remove(change.before);
    if (change.kind === "set") this.#add(change.value);
  }

  #add(object: CachedAllocation): void {
    const node = lostNode(object);
    if (node === object.spec.node) return;
    const names = this.#byNode.get(node) ?? new Set();
    this.#byNode.set(node, names.add(object.name));
  }

  #remove(object: CachedAllocation): void {
    const node = lostNode(object);
    const names = this.#byNode.get(node);
    names?.delete(object.name);
    if (names?.size === 0) this.#byNode.delete(node);
  }
}
