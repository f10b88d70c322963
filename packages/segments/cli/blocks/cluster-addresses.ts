/** The pools and addresses of a cluster that are of a range. */

import { ProblemError } from "../../../../host/cli/exit-code.ts";
import { listObjects, readObjects } from "../../../../host/cli/read-objects.ts";
import type { KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { CONFIG_MAPS } from "../../../../host/kubernetes/paths.ts";
import { formatPrefix, prefixContains } from "../../../../host/net/prefix.ts";
import { IP_ALLOCATIONS, IP_POOLS } from "../../../../host/resources/collections.ts";
import { decodeIpAllocation, type IpAllocationSpec } from "../../../../host/resources/ip-allocation.ts";
import { decodeIpPool } from "../../../../host/resources/ip-pool.ts";
import { describeWorkload } from "../../../../host/resources/member.ts";
import { decodeEpochRecord, EPOCH_MAP } from "../../../../host/resources/registry-epoch.ts";
import type { AddressRangeSpec } from "../../address-range.ts";
import type { ClusterAddresses, UsedAddress } from "../../blocks/plan-adoption.ts";

/** Rejects with ConfigError if a pool or an address cannot be read: it could be of the range. */
export async function addressesIn(
  api: KubeApi,
  { subnet, addressSpace }: Pick<AddressRangeSpec, "subnet" | "addressSpace">,
  name: string,
): Promise<ClusterAddresses> {
  const pools = await readObjects(api, { resource: IP_POOLS }, (object) => decodeIpPool(object, `IPPool of ${name}`));
  const allocations = await readObjects(api, { resource: IP_ALLOCATIONS }, (object) =>
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
  return workload === undefined ? `no pod (${state})` : describeWorkload(workload);
}

/**
 * Returns the epoch of the cluster's registry. Rejects with ProblemError while the registry may lack addresses that
 * pods have.
 */
export async function readEpoch(api: KubeApi): Promise<string> {
  const query = { fieldSelector: `metadata.name=${EPOCH_MAP}` };
  const [map] = await listObjects(api, { resource: CONFIG_MAPS, query });
  const { epoch = "", settled = "", waitsFor = "" } = map === undefined ? {} : decodeEpochRecord(map, EPOCH_MAP);
  if (epoch === "") throw new ProblemError(`The cluster has no ConfigMap ${EPOCH_MAP}: its controller has not led yet`);
  if (epoch === settled) return epoch;
  throw new ProblemError(`Agents have not written yet what pods have: ${waitsFor || "wait"}`);
}
