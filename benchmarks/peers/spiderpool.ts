/**
 * Spiderpool: its plugin, its agent and its controller. A pool is one object, which has a record of each of its addresses.
 * Effects: two daemons, objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startSpiderpool } from "../../scripts/lab/peers/spiderpool.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { type NodePodsOptions, openNodePods } from "../cluster/pods.ts";
import { type Contestant, pluginCalls } from "../ipam/contestant.ts";
import { decodeSubnet, type PoolShape, takenAddresses, usableRange } from "../ipam/pool-shape.ts";

export interface SpiderpoolOptions extends NodePodsOptions {
  readonly kubeconfig: string;
  readonly shape: PoolShape;
}

const POOLS = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools";
const ENDPOINTS = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/bench/spiderendpoints";

/** The records of all addresses in use are one text. */
function filledStatus(shape: PoolShape): object {
  const records = [...takenAddresses(shape)].map((ip, index) => [
    ip,
    { pod: `bench/other-${index}`, podUid: `other-${index}` },
  ]);
  const { size } = decodeSubnet(shape.subnet);
  return {
    allocatedIPs: JSON.stringify(Object.fromEntries(records)),
    totalIPCount: size - 3,
    allocatedIPCount: records.length,
  };
}

export async function openSpiderpool(options: SpiderpoolOptions): Promise<Contestant> {
  const { plane, place, node, kubeconfig, shape } = options;
  const pods = await openNodePods(options);
  const pool = `bench-${node}`;
  const { first, last } = usableRange(shape);
  await plane.client.create(POOLS, {
    ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { name: pool } },
    spec: { ipVersion: 4, subnet: shape.subnet, ips: [`${first}-${last}`], default: false, disable: false },
  });
  if (shape.taken > 0) await plane.client.patch(`${POOLS}/${pool}/status`, { status: filledStatus(shape) });
  const spiderpool = await startSpiderpool({ kubeconfig, node });
  const { directory, version } = referenceTool("spiderpool");
  const stdinFile = join(place.directory, `spiderpool-${node}.json`);
  const ipam = {
    type: "spiderpool",
    default_ipv4_ippool: [pool],
    ipam_unix_socket_path: spiderpool.socket,
    log_file_path: join(place.directory, "spiderpool.log"),
    log_level: "ERROR",
  };
  await writeFile(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: "spiderpool", type: "bridge", ipam }));
  return {
    name: `Spiderpool ${version}`,
    ...pluginCalls(join(directory, "spiderpool"), stdinFile, place, pods.env),
    prepare: async (first, count) => void (await pods.create(first, count)),
    finish: async (first, count) => {
      await pods.remove(first, count);
      // A controller manager would do that: they belong to the pods.
      await plane.client.delete(ENDPOINTS);
    },
    daemonPid: spiderpool.agentPid,
    close: () => spiderpool.stop(),
  };
}
