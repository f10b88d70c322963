/** Reads addresses, pods and nodes from the API server, cut to the parts that a check of the whole cluster compares. */
import * as z from "zod";
import type { AddressedPod, ClusterFacts } from "../../findings/find-cluster-damage.ts";
import { readClusterId } from "../../kubernetes/cluster-id.ts";
import type { KubeApi, KubeObject } from "../../kubernetes/kube-api.ts";
import { NODES, PODS } from "../../kubernetes/paths.ts";
import { messageOf } from "../../lib/describe.ts";
import { parseIp } from "../../net/ip.ts";
import { IP_ALLOCATIONS, IP_POOLS } from "../../resources/collections.ts";
import { decodeIpAllocation } from "../../resources/ip-allocation.ts";
import { decodeIpPool } from "../../resources/ip-pool.ts";
import { CLUSTER_PATIENCE_MS, readObjects, tryTo } from "../cluster-source.ts";

/**
 * Pods are read before allocations: what a pod's status shows was recorded before. Rejects if allocations or pools
 * cannot be read.
 */
export async function readCluster(api: KubeApi): Promise<ClusterFacts> {
  const problems: string[] = [];
  const orNothing = async <T>(what: string, read: Promise<T>): Promise<T | undefined> =>
    read.catch((error: unknown) => {
      problems.push(`${what} cannot be read: ${messageOf(error)}`);
      return undefined;
    });
  const pods = await orNothing("Pods", readObjects(api, { resource: PODS }, podOf));
  const allocations = await readObjects(api, { resource: IP_ALLOCATIONS }, (object) =>
    tryTo(() => decodeIpAllocation(object, "")),
  );
  const pools = await readObjects(api, { resource: IP_POOLS }, (object) => tryTo(() => decodeIpPool(object, "")));
  const nodes = await orNothing(
    "Nodes",
    readObjects(api, { resource: NODES }, (object) => meta.safeParse(object).data?.metadata.name),
  );
  const cluster = await orNothing("Namespace kube-system", readClusterId(api, CLUSTER_PATIENCE_MS));
  return { cluster, nodes: nodes && new Set(nodes), pools, allocations, pods: pods ?? [], problems };
}

const meta = z.object({ metadata: z.object({ name: z.string() }) });

const podSchema = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    deletionTimestamp: z.string().optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
  spec: z.object({ nodeName: z.string().optional(), hostNetwork: z.boolean().optional() }),
  status: z.object({
    phase: z.string().optional(),
    podIPs: z.array(z.object({ ip: z.string() })).optional(),
  }),
});

/** The annotation by which Multus shows the addresses of all NICs. */
const NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status";

const networkStatus = z.array(z.object({ ips: z.array(z.string()).optional() }));

function podOf(object: KubeObject): AddressedPod | undefined {
  const { data } = podSchema.safeParse(object);
  if (data === undefined) return undefined;
  const { metadata, spec, status } = data;
  const { namespace, name, uid, annotations } = metadata;
  const isFinished = status.phase === "Succeeded" || status.phase === "Failed";
  if (spec.hostNetwork === true || metadata.deletionTimestamp !== undefined || isFinished) return undefined;
  const shown = tryTo(() => networkStatus.parse(JSON.parse(annotations?.[NETWORK_STATUS] ?? "[]"))) ?? [];
  const texts = new Set([...(status.podIPs ?? []).map(({ ip }) => ip), ...shown.flatMap(({ ips = [] }) => ips)]);
  const ips = [...texts].flatMap((text) => parseIp(text) ?? []);
  return ips.length === 0 ? undefined : { namespace, name, uid, node: spec.nodeName ?? "", ips };
}
