/**
 * Workloads that a test makes up: the port Applications of the controller, whose real implementation is
 * host/controller/owners.
 */
import type { Demands, Liveness, PoolOwners, Succession } from "../../host/controller/types.ts";
import type { PoolDemand } from "../../host/ipam/subnet-pools.ts";
import type { PoolOwner } from "../../host/resources/fields/subnet-pool.ts";

export type DemandOptions = Partial<Omit<PoolDemand, "application">>;

export class ScriptedPoolOwners implements PoolOwners {
  readonly #listeners = new Set<() => void>();
  /** By UID. */
  readonly #demands = new Map<string, readonly PoolDemand[]>();
  readonly #gone = new Set<string>();
  readonly ending = new Map<string, Set<string>>();
  faults: Demands["faults"] = [];

  /** A Deployment of namespace shop wants this, and nothing that it wanted before. */
  want(name: string, uid: string, ...demands: readonly DemandOptions[]): PoolOwner {
    const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid };
    this.#demands.set(
      uid,
      demands.map((options) => ({ ...DEFAULTS, ...options, application })),
    );
    this.#notify();
    return application;
  }

  /** It is deleted. */
  end(uid: string): void {
    this.#demands.delete(uid);
    this.#gone.add(uid);
    this.#notify();
  }

  demands(): Demands {
    return { demands: [...this.#demands.values()].flat(), faults: this.faults };
  }

  subscribe(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async readLiveness({ uid }: PoolOwner): Promise<Liveness> {
    return this.#gone.has(uid) ? "gone" : this.#demands.has(uid) ? "alive" : "unknown";
  }

  async readSuccession(): Promise<Succession> {
    return "ended";
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

const DEFAULTS = {
  ifName: "eth0",
  family: 4,
  subnets: ["blue"],
  count: 3,
  reason: "2 replicas and 1 more",
  reclaim: true,
  isCurrent: true,
} as const;
