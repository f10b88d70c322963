/**
 * whereabouts with its objects in the API server: every call of the plugin reads and writes them itself, under a
 * lease of the cluster.
 * Effects: objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { type NodePodsOptions, nodeNames, openNodePods } from "../cluster/pods.ts";
import { pluginCalls } from "../ipam/contestant.ts";
import {
  decodeSubnet,
  formatAddress,
  type PoolShape,
  takenOffsets,
  usableRange,
  usableRange6,
} from "../ipam/pool-shape.ts";
import { type PeerIpam, perPodFile } from "./peer-ipam.ts";

export interface WhereaboutsOptions extends NodePodsOptions {
  /** Kubeconfig of the plugin. */
  readonly kubeconfig: string;
  readonly shape: PoolShape;
}

export const WHEREABOUTS = `whereabouts ${referenceTool("whereabouts").version}`;
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

export async function openWhereabouts(options: WhereaboutsOptions): Promise<PeerIpam> {
  const { plane, place, node, kubeconfig, shape } = options;
  const pods = await openNodePods(options);
  if (shape.taken > 0) await plane.client.create(POOLS, filledPool(shape));
  const { directory } = referenceTool("whereabouts");
  const stdinFile = join(place.directory, `whereabouts-${node}.json`);
  const settingsFile = join(place.directory, `whereabouts-${node}.conf`);
  await writeFile(settingsFile, JSON.stringify({ kubernetes: { kubeconfig } }));
  const ipam = {
    type: "whereabouts",
    ipRanges: rangesOf(shape),
    // It wants a file, even an empty one.
    configuration_path: settingsFile,
    log_file: join(place.directory, "whereabouts.log"),
    log_level: "error",
  };
  await writeFile(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: "whereabouts", type: "bridge", ipam }));
  const nodeFile = await perPodFile({ ...options, name: "node-name", texts: nodeNames(options) });
  // It names the node whose pod it serves.
  const env = { ...pods.env, NODENAME: `{text:${nodeFile}}` };
  return {
    name: WHEREABOUTS,
    ...pluginCalls(join(directory, "whereabouts"), stdinFile, place, env),
    prepare: pods.create,
    terminate: pods.terminate,
    finish: pods.remove,
    daemonPid: undefined,
    daemonPids: [],
    records: async () => {
      const { items } = await plane.client.get(POOLS);
      return items.flatMap((pool: { spec: { allocations: object } }) => Object.keys(pool.spec.allocations)).length;
    },
    close: async () => {},
  };
}

function rangesOf({ subnet, subnet6 }: PoolShape): object[] {
  const range = (text: string, { first, last }: ReturnType<typeof usableRange>): object => ({
    ...{ range: text, range_start: first, range_end: last },
  });
  const v6 = subnet6 === undefined ? [] : [range(subnet6, usableRange6(subnet6))];
  return [range(subnet, usableRange({ subnet })), ...v6];
}
