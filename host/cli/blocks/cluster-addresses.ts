/** The pools and addresses of a cluster that are of a range. */
import type { ClusterAddresses, UsedAddress } from "../../blocks/plan-adoption.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath, type Resource } from "../../kubernetes/paths.ts";
import { formatPrefix, prefixContains } from "../../net/prefix.ts";
import type { AddressRangeSpec } from "../../resources/address-range.ts";
import { IP_ALLOCATIONS, IP_POOLS } from "../../resources/collections.ts";
import { decodeIpAllocation, type IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { decodeIpPool } from "../../resources/ip-pool.ts";
import { CLUSTER_PATIENCE_MS } from "../cluster-source.ts";

/** Rejects with ConfigError if a pool or an address cannot be read: it could be of the range. */
export async function addressesIn(
  api: KubeApi,
  { subnet, addressSpace }: Pick<AddressRangeSpec, "subnet" | "addressSpace">,
  name: string,
): Promise<ClusterAddresses> {
  const pools = (await listAll(api, IP_POOLS)).map((object) => decodeIpPool(object, `IPPool of ${name}`));
  const allocations = (await listAll(api, IP_ALLOCATIONS)).map((object) =>
    decodeIpAllocation(object, `IPAllocation of ${name}`),
  );
  return {
    name,
    pools: pools.filter(
      ({ spec }) => spec.addressSpace === addressSpace && formatPrefix(spec.subnet) === formatPrefix(subnet),
    ),
    used: allocations
      .filter(({ spec }) => spec.addressSpace === addressSpace && prefixContains(subnet, spec.ip))
      .map(({ spec }): UsedAddress => ({ ip: spec.ip, pool: spec.pool, holder: holderOf(spec) })),
  };
}

function holderOf({ holders: [holder], workload, state }: IpAllocationSpec): string {
  if (holder !== undefined) return `pod ${holder.namespace}/${holder.pod}`;
  return workload === undefined ? `no pod (${state})` : `${workload.kind} ${workload.namespace}/${workload.name}`;
}

async function listAll(api: KubeApi, resource: Resource): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  for await (const { items } of listPages(api, { path: collectionPath(resource), patienceMs: CLUSTER_PATIENCE_MS }))
    objects.push(...items);
  return objects;
}
