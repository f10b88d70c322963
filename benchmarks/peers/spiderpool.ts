/**
 * Spiderpool: its plugin, its agents and its controller. A pool is one object, which has a record of each of its
 * addresses.
 * Effects: two daemons, objects in the API server.
 */
import { join } from "node:path";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { startSpiderpool } from "../../test/lab/peers/spiderpool.ts";
import { type NodePodsOptions, nodeNames, openNodePods } from "../cluster/pods.ts";
import { pluginCalls } from "../ipam/contestant.ts";
import { decodeSubnet, type PoolShape, takenAddresses, usableRange, usableRange6 } from "../ipam/pool-shape.ts";
import { type PeerIpam, perPodFile } from "./peer-ipam.ts";

export interface SpiderpoolOptions extends NodePodsOptions {
  readonly kubeconfig: string;
  readonly shape: PoolShape;
}

export const SPIDERPOOL = `Spiderpool ${referenceTool("spiderpool").version}`;
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

export async function openSpiderpool(options: SpiderpoolOptions): Promise<PeerIpam> {
  const { plane, place, node, kubeconfig, shape } = options;
  const pods = await openNodePods(options);
  const pool = `bench-${node}`;
  const { first, last } = usableRange(shape);
  await createPool(plane, pool, { ipVersion: 4, subnet: shape.subnet, ips: [`${first}-${last}`] });
  if (shape.taken > 0) await plane.client.patch(`${POOLS}/${pool}/status`, { status: filledStatus(shape) });
  if (shape.subnet6 !== undefined) {
    const range = usableRange6(shape.subnet6);
    await createPool(plane, `${pool}-6`, {
      ...{ ipVersion: 6, subnet: shape.subnet6, ips: [`${range.first}-${range.last}`] },
    });
  }
  const [firstNode = node, ...otherNodes] = nodeNames(options);
  const hasIpv6 = shape.subnet6 !== undefined;
  const spiderpool = await startSpiderpool({ kubeconfig, node: firstNode, otherNodes, hasIpv6 });
  const { agent, agents, controllerPid } = spiderpool;
  const texts = agents.map(({ socket }) => {
    const ipam = {
      type: "spiderpool",
      default_ipv4_ippool: [pool],
      ...(hasIpv6 ? { default_ipv6_ippool: [`${pool}-6`] } : {}),
      ipam_unix_socket_path: socket,
      log_file_path: join(place.directory, "spiderpool.log"),
      log_level: "ERROR",
    };
    return JSON.stringify({ cniVersion: "1.0.0", name: "spiderpool", type: "bridge", ipam });
  });
  const stdinFile = await perPodFile({ ...options, name: "spiderpool", texts });
  return {
    name: SPIDERPOOL,
    ...pluginCalls(join(referenceTool("spiderpool").directory, "spiderpool"), stdinFile, place, pods.env),
    prepare: pods.create,
    terminate: pods.terminate,
    finish: async (from, count) => {
      await pods.remove(from, count);
      // A controller manager would do that: they belong to the pods.
      await plane.client.delete(ENDPOINTS);
    },
    daemonPid: agent.pid,
    daemonPids: [...(controllerPid === undefined ? [] : [controllerPid]), ...agents.map(({ pid }) => pid)],
    records: async () => {
      const { status } = await plane.client.get(`${POOLS}/${pool}`);
      return Object.keys(JSON.parse(status.allocatedIPs ?? "{}")).length;
    },
    close: () => spiderpool.stop(),
  };
}

async function createPool({ client }: ControlPlane, name: string, spec: object): Promise<void> {
  await client.create(POOLS, {
    ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { name } },
    spec: { ...spec, default: false, disable: false },
  });
}
