/** A count with a few examples: always the lowest addresses, so that repeated messages name the same ones. */
import { listed } from "../lib/describe.ts";
import { compareIp, formatIp } from "../net/ip.ts";
import { describeMember } from "../resources/member.ts";
import type { CachedAllocation } from "./cached-allocation.ts";

/** Most examples that a message names: addresses, pools, pods. */
export const MAX_EXAMPLES = 3;

export class Examples {
  count = 0;
  readonly #lowest: CachedAllocation["spec"][] = [];

  add(spec: CachedAllocation["spec"]): void {
    this.count++;
    const last = this.#lowest.at(-1);
    if (this.#lowest.length === MAX_EXAMPLES && last !== undefined && !isBefore(spec, last)) return;
    const at = this.#lowest.findIndex((other) => isBefore(spec, other));
    this.#lowest.splice(at < 0 ? this.#lowest.length : at, 0, spec);
    if (this.#lowest.length > MAX_EXAMPLES) this.#lowest.pop();
  }

  /** `10.6.0.9 (pod shop/web-0), 10.6.0.12 (cooling) and 40 more` */
  toString(): string {
    return listed(this.#lowest.map(describe), this.count);
  }
}

function isBefore(a: CachedAllocation["spec"], b: CachedAllocation["spec"]): boolean {
  const order = compareIp(a.ip, b.ip);
  return order < 0 || (order === 0 && a.addressSpace < b.addressSpace);
}

/** `10.6.0.9 (pod shop/web-0)` */
export function describe({ ip, state, holders: [holder], workload }: CachedAllocation["spec"]): string {
  const address = formatIp(ip);
  if (state === "Bound" && holder !== undefined) return `${address} (pod ${holder.namespace}/${holder.pod})`;
  if (state === "Kept" && workload !== undefined) return `${address} (kept for ${describeMember(workload)})`;
  return `${address} (${{ Bound: "in use", Kept: "kept", Cooling: "cooling", Quarantined: "in quarantine" }[state]})`;
}
