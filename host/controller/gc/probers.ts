/**
 * Who could ask for an address of a pool: the nodes that attach pods from it, as the caches have them. Counted once for each round of looks.
 */
import { formatPrefix } from "../../net/prefix.ts";
import type { Caches } from "../types.ts";
import { chooseProber, type ProberCandidate } from "./plan-prober.ts";
import { sightNode } from "./sightings.ts";

export class Probers {
  readonly #caches: Pick<Caches, "allocations" | "nodes" | "pools">;
  /** By pool and node. */
  #attached: Map<string, Map<string, number>> | undefined;
  readonly #asked = new Map<string, number>();

  constructor(caches: Pick<Caches, "allocations" | "nodes" | "pools">) {
    this.#caches = caches;
  }

  /** Undefined when no node that is ready has a pod on the pool's segment, but for those. */
  choose(pool: string, except: ReadonlySet<string>): string | undefined {
    const attached = this.#count();
    const subnet = this.#subnetOf(pool);
    const others = [...attached.keys()].filter((name) => name !== pool && subnet !== undefined && this.#subnetOf(name) === subnet); // biome-ignore format: one thought
    const names = new Set([pool, ...others].flatMap((name) => [...(attached.get(name)?.keys() ?? [])]));
    const candidates = [...names].map((node): ProberCandidate => {
      const isReady = sightNode(this.#caches.nodes.items.get(node)) === "ready";
      const besides = others.reduce((sum, name) => sum + (attached.get(name)?.get(node) ?? 0), 0);
      return {
        node,
        isReady,
        besides,
        attached: attached.get(pool)?.get(node) ?? 0,
        asked: this.#asked.get(node) ?? 0,
      };
    });
    const chosen = chooseProber({ candidates, except });
    if (chosen !== undefined) this.#asked.set(chosen, (this.#asked.get(chosen) ?? 0) + 1);
    return chosen;
  }

  #subnetOf(pool: string): string | undefined {
    const spec = this.#caches.pools.items.get(pool)?.value?.spec;
    return spec === undefined ? undefined : `${spec.addressSpace}/${formatPrefix(spec.subnet)}`;
  }

  #count(): Map<string, Map<string, number>> {
    if (this.#attached !== undefined) return this.#attached;
    const attached = new Map<string, Map<string, number>>();
    for (const { spec } of this.#caches.allocations.items.values()) {
      const { pool, node, holders, quarantine } = spec;
      const byNode = attached.get(pool) ?? new Map<string, number>();
      attached.set(pool, byNode);
      for (const holder of holders) byNode.set(holder.node, (byNode.get(holder.node) ?? 0) + 1);
      const isTold = quarantine?.reason === "NodeLost" && quarantine.holder?.node !== node;
      if (isTold) this.#asked.set(node, (this.#asked.get(node) ?? 0) + 1);
    }
    this.#attached = attached;
    return attached;
  }
}
