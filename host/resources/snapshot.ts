/** All resources at one moment, by name, and the problems between them. */
import { DEFAULT_VENDOR_CONF, type VendorConf } from "../config/vendor-conf.ts";
import { checkPools, problemsOf } from "./check-pools.ts";
import { COORDINATOR_NAME, type Coordinator, firstNicOf, IS_IGNORED } from "./coordinator.ts";
import type { IpPool } from "./ip-pool.ts";
import type { Resource } from "./manifest.ts";
import type { Namespace } from "./namespace.ts";
import { describeSharing, planOverlap } from "./plan-overlap.ts";
import type { Pod } from "./pod.ts";
import { type PoolsByName, tableOfPools } from "./pools-by-name.ts";
import { hasEnded, type ReservedIp } from "./reserved-ip.ts";

export interface Snapshot {
  /** Usable pools, by name. In a cluster the map changes with the next snapshot. */
  readonly pools: PoolsByName;
  /** Why the other pools are unusable, by name: `is refused: …`. */
  readonly refused: ReadonlyMap<string, string>;
  readonly reserved: readonly ReservedIp[];
  /** ReservedIPs whose time is over, as far as they are known. */
  readonly ended: readonly ReservedIp[];
  readonly namespaces: ReadonlyMap<string, Namespace>;
  /** By `namespace/name`. */
  readonly pods: ReadonlyMap<string, Pod>;
  /** The one named `default`. */
  readonly coordinator: Coordinator | undefined;
  /** The name of a pod's first NIC. */
  readonly firstNic: string;
  readonly vendorConf: VendorConf;
  /** One sentence each. In a cluster they cost a look at all pools. */
  readonly problems: readonly string[];
}

interface ResourceSource {
  readonly source: string;
  readonly resources: readonly Resource[];
}

/**
 * Merges the files in the order given. The first of two resources with the same kind and name is used; the second is a
 * problem. `nowMs`: by the wall clock; by default no ReservedIP has ended.
 */
export function assembleSnapshot(sources: readonly ResourceSource[], nowMs = 0): Snapshot {
  const problems: string[] = [];
  const first = new Map<string, { resource: Resource; source: string }>();
  for (const { source, resources } of sources) {
    for (const resource of resources) {
      const key = `${resource.kind} "${nameOf(resource)}"`;
      const other = first.get(key);
      if (other !== undefined)
        problems.push(`${key} of ${source} is ignored: ${other.source} has one of that name too`);
      else if (resource.kind === "Coordinator" && resource.name !== COORDINATOR_NAME)
        problems.push(`${key} of ${source} ${IS_IGNORED}`);
      else first.set(key, { resource, source });
    }
  }
  const resources = [...first.values()].map(({ resource }) => resource);
  const every = <K extends Resource["kind"]>(kind: K): Extract<Resource, { kind: K }>[] =>
    resources.filter((resource): resource is Extract<Resource, { kind: K }> => resource.kind === kind);
  const [coordinator] = every("Coordinator");
  const all = every("ReservedIP");
  const { accepted, refused } = checkPools(every("IPPool"));
  return {
    pools: tableOfPools(accepted),
    refused,
    reserved: all.filter((each) => !hasEnded(each, nowMs)),
    ended: all.filter((each) => hasEnded(each, nowMs)),
    namespaces: new Map(every("Namespace").map((namespace) => [namespace.name, namespace])),
    pods: new Map(every("Pod").map((pod) => [nameOf(pod), pod])),
    coordinator,
    firstNic: firstNicOf(coordinator),
    vendorConf: every("ConfigMap")[0]?.conf ?? DEFAULT_VENDOR_CONF,
    problems: [...problems, ...problemsOf(accepted, refused), ...sharingOf(accepted)],
  };
}

/** In a cluster the pools' conditions say it. */
function sharingOf(pools: readonly IpPool[]): string[] {
  return [...planOverlap(pools)].map(([name, sharing]) => `IPPool "${name}": ${describeSharing("IPPools", sharing)}`);
}

function nameOf(resource: Resource): string {
  return resource.kind === "Pod" ? `${resource.namespace}/${resource.name}` : resource.name;
}
