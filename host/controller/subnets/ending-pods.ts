/**
 * Addresses of pods that are being deleted. Most workloads replace a pod at once, and it keeps its address to its end:
 * until then the workload needs more addresses than it has pods, or a rollout waits for each grace period.
 */
import type { PoolDemand } from "../../ipam/subnet-pools.ts";
import { listed } from "../../lib/describe.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { MAX_EXAMPLES } from "../examples.ts";
import type { ControlledPool } from "../objects.ts";
import type { Caches, PoolOwners } from "../types.ts";
import { keyOf } from "./plan/planned-pool.ts";
import { boundIn } from "./view.ts";

type Ending = PoolOwners["ending"];

/** Characters of the names in a pool's reason, which the API server limits. */
const MAX_NAMES_LENGTH = 300;

export class EndingPods {
  readonly #pods: () => Ending;
  readonly #allocations: Caches["allocations"];
  /** By demand, so that the result stays the same object while the same pods are ending. */
  readonly #known = new WeakMap<PoolDemand, { readonly pods: string; readonly demand: PoolDemand }>();

  constructor(pods: () => Ending, allocations: Caches["allocations"]) {
    this.#pods = pods;
    this.#allocations = allocations;
  }

  /** Whether an ending pod has the address. */
  has(allocation: CachedAllocation | undefined): boolean {
    const pods = this.#pods();
    return pods.size > 0 && allocation !== undefined && podsOf(allocation, pods).length > 0;
  }

  /** Returns the demands plus the addresses of ending pods in the workload's pools. */
  addTo(demands: readonly PoolDemand[], pools: readonly ControlledPool[]): readonly PoolDemand[] {
    const ending = this.#findIn(pools);
    if (ending.size === 0) return demands;
    return demands.map((demand) => {
      const { application, ifName, family, subnets } = demand;
      const pods = subnets.flatMap((subnet) => ending.get(keyOf(application, ifName, family, subnet)) ?? []).sort();
      const text = pods.join();
      const known = this.#known.get(demand);
      if (known?.pods === text) return known.demand;
      const now = addEnding(demand, pods);
      this.#known.set(demand, { pods: text, demand: now });
      return now;
    });
  }

  #findIn(pools: readonly ControlledPool[]): ReadonlyMap<string, readonly string[]> {
    const all = this.#pods();
    const found = new Map<string, string[]>();
    if (all.size === 0) return found;
    for (const pool of pools) {
      const { generated, family = 4 } = pool.value?.spec ?? {};
      if (generated === undefined || !all.has(generated.application.namespace)) continue;
      const pods = boundIn(pool, this.#allocations).flatMap((allocation) => podsOf(allocation, all));
      if (pods.length === 0) continue;
      const key = keyOf(generated.application, generated.interface, family, generated.subnet);
      found.set(key, [...(found.get(key) ?? []), ...pods]);
    }
    return found;
  }
}

function podsOf({ spec: { holders } }: CachedAllocation, ending: Ending): string[] {
  return holders.flatMap(({ namespace, pod }) => (ending.get(namespace)?.has(pod) === true ? [pod] : []));
}

/** `pods`: a name for each address. */
export function addEnding(demand: PoolDemand, pods: readonly string[]): PoolDemand {
  const { turnover, count, reason } = demand;
  const { length } = pods;
  if (turnover === undefined || length === 0) return demand;
  const { needed, isFixed } = turnover;
  if (!isFixed) {
    const more = `${reason}, and ${length} of pods that are ending`;
    return { ...demand, count: count + length, reason: more, reasonIfShort: `${more}: ${nameSome(pods)}` };
  }
  if (needed + length <= count) return demand;
  const which = length === 1 ? "1 of them is of a pod that is ending" : `${length} of them are of pods that are ending`;
  return { ...demand, reason: `${reason}; ${which}: ${nameSome(pods)}` };
}

function nameSome(pods: readonly string[]): string {
  const names = [...new Set(pods)];
  const shown = names.slice(0, MAX_EXAMPLES);
  while (shown.length > 1 && shown.join().length > MAX_NAMES_LENGTH) shown.pop();
  return listed(shown, names.length);
}
