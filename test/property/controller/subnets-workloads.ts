/**
 * The workloads of the walk, as a script tells them: what they want, and whether they live. Each controller hears of
 * a change when the walk lets it.
 * Effects: none but on itself.
 */
import type { PoolDemand } from "../../../host/ipam/subnet-pools.ts";
import type { PoolOwner } from "../../../host/resources/fields/subnet-pool.ts";

export interface Wanted {
  readonly subnets: readonly string[];
  readonly count: number;
  readonly reclaim: boolean;
  /** More than one: each a demand of its own. */
  readonly nics: readonly string[];
  /** Pods of a former version, which name other Subnets. */
  readonly former?: { readonly subnets: readonly string[]; readonly count: number } | undefined;
}

export interface Workload {
  readonly application: PoolOwner;
  readonly wanted: Wanted;
}

export class Workloads {
  /** By name; those that live. */
  readonly living = new Map<string, Workload>();
  /** UIDs of all that ever were. */
  readonly gone = new Set<string>();
  /** By the UID of one that is gone: that which has taken its pods over. */
  readonly successors = new Map<string, PoolOwner>();

  come(name: string, uid: string, wanted: Wanted): void {
    const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name, uid };
    this.living.set(name, { application, wanted });
  }

  change(name: string, change: (wanted: Wanted) => Wanted): void {
    const workload = this.living.get(name);
    if (workload !== undefined) this.living.set(name, { ...workload, wanted: change(workload.wanted) });
  }

  go(name: string): void {
    const workload = this.living.get(name);
    if (workload !== undefined) this.gone.add(workload.application.uid);
    this.living.delete(name);
  }

  /** It is deleted and comes again around its pods. */
  recreate(name: string, uid: string): void {
    const workload = this.living.get(name);
    if (workload === undefined) return;
    this.go(name);
    this.come(name, uid, workload.wanted);
    this.successors.set(workload.application.uid, { ...workload.application, uid });
  }

  /** As they are now. */
  demands(familyOf: (subnet: string) => 4 | 6 = (subnet) => (subnet.startsWith("six") ? 6 : 4)): PoolDemand[] {
    return [...this.living.values()].flatMap(({ application, wanted }) => {
      const { nics, former, reclaim } = wanted;
      const versions = [
        { subnets: wanted.subnets, count: wanted.count, isCurrent: true },
        ...(former === undefined ? [] : [{ ...former, isCurrent: false }]),
      ];
      return nics.flatMap((ifName) =>
        versions.flatMap(({ subnets, count, isCurrent }) =>
          ([4, 6] as const).flatMap((family) => {
            const named = subnets.filter((subnet) => familyOf(subnet) === family);
            if (named.length === 0) return [];
            const reason = `${count} replicas`;
            return [{ application, ifName, family, subnets: named, count, reason, reclaim, isCurrent }];
          }),
        ),
      );
    });
  }
}
