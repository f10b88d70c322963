/** Reads addresses, pods and nodes from the API server, cut to the parts that a check of the whole cluster compares. */
import * as z from "zod";
import type { Controllers } from "../../findings/check-controllers.ts";
import type { AddressedPod, ClusterFacts } from "../../findings/find-cluster-damage.ts";
import { readClusterId } from "../../kubernetes/cluster-id.ts";
import { isForbidden, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { NODES, PODS } from "../../kubernetes/paths.ts";
import { orElse, orNote } from "../../lib/try-or.ts";
import { parseIp } from "../../net/ip.ts";
import { COORDINATORS, IP_ALLOCATIONS, IP_POOLS, RESERVED_IPS, SUBNETS } from "../../resources/collections.ts";
import { decodeIpAllocation } from "../../resources/ip-allocation.ts";
import { readNetworkStatus } from "../../resources/network-status.ts";
import { decodePod } from "../../resources/pod.ts";
import { readBerthPods } from "../berth-pods.ts";
import { findingsIn } from "../cluster-source.ts";
import { readLeader } from "../read-leader.ts";
import { CLUSTER_PATIENCE_MS, decodedPools, listObjects, nameOf, readObjects, tryTo } from "../read-objects.ts";

/**
 * Pods are read before allocations: an address in a pod's status was recorded before. Rejects if allocations or pools
 * cannot be read.
 */
export async function readCluster(api: KubeApi): Promise<ClusterFacts> {
  const problems: string[] = [];
  const pods = await orNote(problems, "Pods", readObjects(api, { resource: PODS }, podOf));
  const allocations = await readObjects(api, { resource: IP_ALLOCATIONS }, (object) =>
    tryTo(() => decodeIpAllocation(object, "")),
  );
  const pools = await listObjects(api, { resource: IP_POOLS });
  // Users without the right to read them see fewer findings.
  const others = Object.entries({ Subnet: SUBNETS, ReservedIP: RESERVED_IPS, Coordinator: COORDINATORS }).map(
    ([kind, resource]) => {
      const found = readObjects(api, { resource }, (object) => findingsIn(kind, object));
      return orNote(problems, `${kind}s`, found.catch(orElse(isForbidden, [])));
    },
  );
  const statedOfOthers = (await Promise.all(others)).flatMap((found = []) => found.flat());
  const nodes = await orNote(problems, "Nodes", readObjects(api, { resource: NODES }, nameOf));
  const cluster = await orNote(problems, "Namespace kube-system", readClusterId(api, CLUSTER_PATIENCE_MS));
  const controllers = pods && (await orNote(problems, "Controllers", readControllers(api)));
  return {
    ...{ controllers, cluster, nodes: nodes && new Set(nodes), allocations, pods: pods ?? [], problems },
    pools: decodedPools(pools),
    stated: [...pools.flatMap((object) => findingsIn("IPPool", object)), ...statedOfOthers],
  };
}

async function readControllers(api: KubeApi): Promise<Controllers> {
  const pods = await readBerthPods(api);
  const notReady = pods.filter(
    ({ component, phase, isReady }) =>
      component === "controller" && !isReady && (phase === "Pending" || phase === "Running"),
  );
  return { notReady, leader: await readLeader(api, pods, new Date()).catch(orElse(isForbidden, undefined)) };
}

const shown = z.object({
  metadata: z.object({ annotations: z.record(z.string(), z.string()).optional() }),
  status: z.object({ podIPs: z.array(z.object({ ip: z.string() })).optional() }),
});

function podOf(object: KubeObject): AddressedPod | undefined {
  const pod = tryTo(() => decodePod(object, "pod"));
  const { metadata, status } = shown.safeParse(object).data ?? {};
  if (pod === undefined || pod.hostNetwork || pod.deleting || pod.isFinished) return undefined;
  const { namespace, name, nodeName: node = "" } = pod;
  const ofNics = readNetworkStatus(metadata?.annotations).flatMap(({ ips }) => ips);
  const texts = new Set([...(status?.podIPs ?? []).map(({ ip }) => ip), ...ofNics]);
  const ips = [...texts].flatMap((text) => parseIp(text) ?? []);
  return ips.length === 0 ? undefined : { namespace, name, node, ips };
}
