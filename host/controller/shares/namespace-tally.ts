/**
 * How many addresses the pods of each namespace hold, and what is kept for its workloads: counted along with the allocations.
 * Owned by keep-shares.ts.
 * Effects: none but on itself.
 */
import type { IpAllocation } from "../../resources/ip-allocation.ts";

export class NamespaceTally {
  readonly #counts = new Map<string, number>();

  /** Undefined: there was none, or there is none any more. */
  change(before: IpAllocation | undefined, now: IpAllocation | undefined): void {
    const [former, current] = [before, now].map((each) => each && namespaceOf(each));
    if (former === current) return;
    if (former !== undefined) this.#add(former, -1);
    if (current !== undefined) this.#add(current, 1);
  }

  /** Those with as many as `limit`, by name in the order of their names, at most `most` of them. */
  full(limit: number, most: number): { readonly name: string; readonly addresses: number }[] {
    const full = [...this.#counts].flatMap(([name, addresses]) => (addresses >= limit ? [{ name, addresses }] : []));
    return full.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, most);
  }

  #add(namespace: string, count: number): void {
    const sum = (this.#counts.get(namespace) ?? 0) + count;
    if (sum === 0) this.#counts.delete(namespace);
    else this.#counts.set(namespace, sum);
  }
}

/** Undefined for an address that cools: it is nobody's. Of a machine that migrates both holders are in one namespace. */
function namespaceOf({ spec: { holders, workload, quarantine } }: IpAllocation): string | undefined {
  return (holders[0]?.namespace ?? workload?.namespace ?? quarantine?.holder?.namespace) || undefined;
}
