/**
 * The cluster's part of a dry run of the ADD: it reads the same objects as the ADD, and its writes end in a copy of
 * the registry.
 */
import type { SubnetState } from "../../ipam/subnet-capacity.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, Claim } from "../../registry/registry.ts";
import type { Collector } from "../gc/collector.ts";
import type { ClusterIpam, PoolChanges, Prefetched } from "../ipam/cluster-ipam.ts";
import { evictPredecessor } from "./address-owners.ts";

export class DryRunIpam implements ClusterIpam {
  readonly prefetched: Prefetched;
  readonly poolChanges: PoolChanges = { changeCount: 0, changed: async () => false };
  readonly #ipam: ClusterIpam;
  readonly #copy: KubernetesRegistry;
  readonly #collector: Pick<Collector, "isPodGone">;

  constructor(ipam: ClusterIpam, copy: KubernetesRegistry, collector: Pick<Collector, "isPodGone">) {
    this.#ipam = ipam;
    this.#copy = copy;
    this.#collector = collector;
    this.prefetched = prefetchedFor(ipam.prefetched, copy);
  }

  readSubnet(of: { readonly name: string; readonly namespace: string }, signal: AbortSignal): Promise<SubnetState> {
    return this.#ipam.readSubnet(of, signal);
  }

  isShared(row: Allocation, signal: AbortSignal): Promise<boolean> {
    return this.#ipam.isShared(row, signal);
  }

  releaseRetained(retained: readonly Allocation[]): Promise<void> {
    return this.#copy.releaseRetained(retained);
  }

  /** A pod that is gone loses the address: the ADD takes it off its NIC. */
  evictPredecessor(former: Allocation, claimant: Pick<Claim, "namespace" | "pod">): Promise<Allocation | undefined> {
    const isPodGone = (row: Allocation): Promise<boolean> => this.#collector.isPodGone(row);
    return evictPredecessor({ registry: this.#copy, isPodGone, endOrphan: async () => undefined }, former, claimant);
  }

  async markWanted(): Promise<void> {}

  async awaitChange(): Promise<boolean> {
    return false;
  }

  forgetPoolOwners(): void {}

  reportRefusal(): void {}

  reportIgnored(): void {}

  findLoss(): undefined {}

  forDryRun(): ClusterIpam {
    return this;
  }
}

/** Begins, ends and counts no claim ahead of an ADD. */
function prefetchedFor(prefetched: Prefetched, copy: KubernetesRegistry): Prefetched {
  const discarded = new Set<string>();
  const claimedFor: Prefetched["claimedFor"] = (owner, ifName) =>
    discarded.has(`${owner}/${ifName}`) ? [] : prefetched.claimedFor(owner, ifName);
  return {
    waitForClaim: async () => {},
    claimedFor,
    used: () => {},
    discard: async (owner, ifName) => {
      await copy.undo(claimedFor(owner, ifName));
      discarded.add(`${owner}/${ifName}`);
    },
  };
}
