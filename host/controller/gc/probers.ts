/**
 * Which node probes an address whose own node is gone (conflict): one that attaches pods from the same pool, since
 * its link reaches the segment. The lost node itself comes first once it is back: it need not probe, because it can
 * confirm that the pod has stopped (node-lost). Another machine with its name cannot, and probes by itself.
 */
import { formatPrefix } from "../../net/prefix.ts";
import type { Holder } from "../../resources/ip-allocation.ts";
import type { Caches } from "../types.ts";
import { nodeStatus } from "./read-status.ts";

/** A node as the caches have it. A hint is enough: any candidate that can probe will do. */
interface ProberCandidate {
  readonly node: string;
  readonly isReady: boolean;
  /** Bound addresses of the pool on the node. */
  readonly attached: number;
  /** Bound addresses of other pools of the same subnet on the node. */
  readonly besides: number;
  /** Addresses that the node has been asked to probe. */
  readonly asked: number;
}

interface ProberChoice {
  readonly candidates: readonly ProberCandidate[];
  /** The node that has the object now, and nodes that were asked before and did not find the address silent. */
  readonly except: ReadonlySet<string>;
}

/**
 * Prefers nodes that attach from the pool itself to those that attach from its subnet, and among them the least busy.
 * Returns undefined if none can probe.
 */
function chooseProber({ candidates, except }: ProberChoice): string | undefined {
  const able = candidates.filter(
    ({ node, isReady, attached, besides }) => isReady && attached + besides > 0 && !except.has(node),
  );
  const near = able.filter(({ attached }) => attached > 0);
  const order = (a: ProberCandidate, b: ProberCandidate): number => a.asked - b.asked || (a.node < b.node ? -1 : 1);
  return (near.length > 0 ? near : able).sort(order)[0]?.node;
}

interface ProberQuestion extends Pick<ProberChoice, "except"> {
  readonly pool: string;
  /** The node of the pod that had the address, and its machine. */
  readonly lost: Pick<Holder, "node" | "machine">;
}

export class Probers {
  readonly #caches: Pick<Caches, "allocations" | "nodes" | "pools">;
  /** By pool and node. */
  #attached: Map<string, Map<string, number>> | undefined;
  readonly #asked = new Map<string, number>();

  constructor(caches: Pick<Caches, "allocations" | "nodes" | "pools">) {
    this.#caches = caches;
  }

  /**
   * Returns undefined if the lost node is not ready, or excepted, and no other ready node has a pod on the pool's
   * segment.
   */
  choose({ pool, lost, except }: ProberQuestion): string | undefined {
    if (this.#isReady(lost) && !except.has(lost.node)) return lost.node;
    const attached = this.#count();
    const subnet = this.#subnetOf(pool);
    const others = [...attached.keys()].filter(
      (name) => name !== pool && subnet !== undefined && this.#subnetOf(name) === subnet,
    );
    const names = new Set([pool, ...others].flatMap((name) => [...(attached.get(name)?.keys() ?? [])]));
    const candidates = [...names].map((node): ProberCandidate => {
      const isReady = this.#isReady({ node });
      const besides = others.reduce((sum, name) => sum + (attached.get(name)?.get(node) ?? 0), 0);
      return {
        node,
        isReady,
        besides,
        attached: attached.get(pool)?.get(node) ?? 0,
        asked: this.#asked.get(node) ?? 0,
      };
    });
    const chosen = chooseProber({ candidates, except: new Set([lost.node, ...except]) });
    if (chosen !== undefined) this.#asked.set(chosen, (this.#asked.get(chosen) ?? 0) + 1);
    return chosen;
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
