/**
 * whereabouts with its objects in the API server: every call of the plugin reads and writes them itself, under a lease of the cluster.
 * Effects: objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { type NodePodsOptions, openNodePods } from "../cluster/pods.ts";
import { type Contestant, pluginCalls } from "../ipam/contestant.ts";
import { decodeSubnet, formatAddress, type PoolShape, takenOffsets } from "../ipam/pool-shape.ts";

export interface WhereaboutsOptions extends NodePodsOptions {
  /** Of the plugin. */
  readonly kubeconfig: string;
  readonly shape: PoolShape;
}

const NAMESPACE = "kube-system";
const POOLS = `/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/${NAMESPACE}/ippools`;

/** The pool as one object, which has a record of each address by its place in the range. */
function filledPool(shape: PoolShape): object {
  const { base } = decodeSubnet(shape.subnet);
  const allocations = [...takenOffsets(shape)].map((offset) => [
    String(offset),
    { id: `other-${offset}`, podref: `bench/other-${offset}`, ifname: "eth0" },
  ]);
  return {
    ...{ apiVersion: "whereabouts.cni.cncf.io/v1alpha1", kind: "IPPool" },
    metadata: { name: shape.subnet.replace("/", "-"), namespace: NAMESPACE },
    spec: {
      range: `${formatAddress(base)}/${shape.subnet.split("/")[1]}`,
      allocations: Object.fromEntries(allocations),
    },
  };
}

export async function openWhereabouts(options: WhereaboutsOptions): Promise<Contestant> {
  const { plane, place, node, kubeconfig, shape } = options;
  const pods = await openNodePods(options);
  if (shape.taken > 0) await plane.client.create(POOLS, filledPool(shape));
  const { directory, version } = referenceTool("whereabouts");
  const stdinFile = join(place.directory, `whereabouts-${node}.json`);
  const settingsFile = join(place.directory, `whereabouts-${node}.conf`);
  await writeFile(settingsFile, JSON.stringify({ kubernetes: { kubeconfig } }));
  const ipam = {
    type: "whereabouts",
    range: shape.subnet,
    // It wants a file, even an empty one.
    configuration_path: settingsFile,
    log_file: join(place.directory, "whereabouts.log"),
    log_level: "error",
  };
  await writeFile(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: "whereabouts", type: "bridge", ipam }));
  return {
    name: `whereabouts ${version}`,
    // It names the node whose pod it serves.
    ...pluginCalls(join(directory, "whereabouts"), stdinFile, place, { ...pods.env, NODENAME: node }),
    prepare: async (first, count) => void (await pods.create(first, count)),
    finish: async (first, count) => void (await pods.remove(first, count)),
    daemonPid: undefined,
    close: async () => {},
  };
}
