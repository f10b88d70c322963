/**
 * Berth with an agent of a cluster, on a node of its own, whose pods are there before their ADD.
 * Effects: an agent, objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { until } from "../../test/lab/waiting.ts";
import { type Contestant, pluginCalls } from "../ipam/contestant.ts";
import { type NodePodsOptions, openNodePods } from "./pods.ts";

export const BERTH_AHEAD = "berth in a cluster, claimed ahead";
export const BERTH_PLAIN = "berth in a cluster, nothing claimed ahead";

export interface ClusterBerthOptions extends NodePodsOptions {
  /** Whether a network definition of the node names Berth, so that it claims when a pod is bound. */
  readonly isAhead: boolean;
  /** The network's; default: the cluster's. */
  readonly pool?: string;
  /** Number of addresses of a pod. Default: 1. */
  readonly families?: 1 | 2;
  /** Kubeconfig of the agent. Default: the plane's. */
  readonly kubeconfig?: string;
}

/** Until the API server has nothing more to do with the pods that were just created: it has the same processors. */
const QUIET_MS = 300;

export async function openClusterBerth(options: ClusterBerthOptions): Promise<Contestant> {
  const { plane, place, node, isAhead, pool, families = 1, kubeconfig = plane.kubeconfig } = options;
  const network = networkOf(pool);
  const pods = await openNodePods(options);
  const agent = await startAgent({ config: {}, kubeconfig, args: ["--node", node] });
  if (isAhead) await writeFile(join(agent.cniConfDir, "10-bench.conflist"), JSON.stringify(network));
  await until("the agent to be ready", async () => (await agent.request("/v1/health")).status === 200);
  const stdinFile = join(place.directory, `berth-${node}.json`);
  const { plugins, ...frame } = network;
  await writeFile(stdinFile, JSON.stringify({ ...frame, ...plugins[0] }));
  const objects = async (): Promise<number> =>
    (await plane.client.get(`/apis/ipam.vendor.io/v1/ipallocations?fieldSelector=spec.node%3D${node}`)).items.length;
  return {
    name: isAhead ? BERTH_AHEAD : BERTH_PLAIN,
    ...pluginCalls(join(berthBin, "berth"), stdinFile, place, { ...agent.env, ...pods.env }),
    daemonPid: agent.pid,
    prepare: async (first, count) => {
      await pods.create(first, count);
      if (isAhead) await until("the claims", async () => (await objects()) === families * count);
      await sleep(QUIET_MS);
    },
    terminate: async (first, count) => {
      await pods.terminate(first, count);
      await sleep(QUIET_MS);
    },
    finish: async (first, count) => {
      await pods.remove(first, count);
      await until("the releases", async () => (await objects()) === 0);
    },
    close: () => agent.delete(),
  };
}

/** A network definition that names Berth, and that pool of it unless it is the cluster's default. */
export function networkOf(pool: string | undefined) {
  const ipam = { type: "berth", ...(pool === undefined ? {} : { default_ipv4_ippool: [pool] }) };
  return { cniVersion: "1.0.0", name: "bench", plugins: [{ type: "bridge", ipam }] };
}
