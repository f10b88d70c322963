/**
 * Chooses the node that probes an address whose own node is gone (conflict): one that attaches pods from the same pool,
 * since its link reaches the segment. The lost node comes first once it is back: it need not probe, because it can
 * confirm that the pod has stopped (node-lost). Another machine with its name cannot, and probes itself.
 */
import { compareText } from "../../lib/order.ts";
import { formatPrefix } from "../../net/prefix.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import type { Caches } from "../types.ts";
import { nodeStatus } from "./read-status.ts";

interface ProberQuestion {
  readonly pool: string;
  /** The object's present node, and nodes that were asked before and did not find the address silent. */
  readonly except: ReadonlySet<string>;
  /** The node of the pod that had the address, and its machine. */
  readonly lost: Pick<Holder, "node" | "machine">;
}

export class Probers {
  readonly #caches: Pick<Caches, "allocations" | "nodes" | "pools">;
  /** The nodes with bound addresses, by pool. */
  #attached: Map<string, Set<string>> | undefined;
  /** Number of addresses that each node was asked to probe. */
  readonly #asked = new Map<string, number>();

  constructor(caches: Pick<Caches, "allocations" | "nodes" | "pools">) {
    this.#caches = caches;
  }

  /**
   * Prefers nodes that attach from the pool itself to those that attach from its subnet, and among them the least busy.
   * Returns undefined if the lost node is not ready, or excepted, and none of these is ready. The caches are hints.
   */
  choose({ pool, lost, except }: ProberQuestion): string | undefined {
    if (this.#isReady(lost) && !except.has(lost.node)) return lost.node;
    const attached = this.#count();
    const subnet = this.#subnetOf(pool);
    const near = [...attached.keys()].filter((name) => subnet !== undefined && this.#subnetOf(name) === subnet);
    const isAble = (node: string) => node !== lost.node && !except.has(node) && this.#isReady({ node });
    const tasksOf = (node: string) => this.#asked.get(node) ?? 0;
    for (const pools of [[pool], near]) {
      const able = [...new Set(pools.flatMap((name) => [...(attached.get(name) ?? [])]))].filter(isAble);
      const [chosen] = able.sort((a, b) => tasksOf(a) - tasksOf(b) || compareText(a, b));
      if (chosen === undefined) continue;
      this.#asked.set(chosen, tasksOf(chosen) + 1);
      return chosen;
    }
    return undefined;
  }

  /** Whether another machine has the lost node's name, and its agent acts. */
  isReplaced({ node, machine }: ProberQuestion["lost"]): boolean {
    return this.#isReady({ node }) && !this.#isReady({ node, machine });
  }

  #isReady({ node, machine }: ProberQuestion["lost"]): boolean {
    return nodeStatus(this.#caches.nodes.items.get(node), machine) === "ready";
  }

  #subnetOf(pool: string): string | undefined {
    const spec = this.#caches.pools.items.get(pool)?.value?.spec;
    return spec === undefined ? undefined : `${spec.addressSpace}/${formatPrefix(spec.subnet)}`;
  }

  #count(): Map<string, Set<string>> {
    if (this.#attached !== undefined) return this.#attached;
    this.#attached = new Map();
    for (const { spec } of this.#caches.allocations.items.values()) {
      const { pool, node, holders, quarantine } = spec;
      const nodes = this.#attached.getOrInsertComputed(pool, () => new Set());
      for (const holder of holders) nodes.add(holder.node);
      const isTold = quarantine?.reason === "NodeLost" && quarantine.holder?.node !== node;
      if (isTold) this.#asked.set(node, (this.#asked.get(node) ?? 0) + 1);
    }
    return this.#attached;
  }
}
