/**
 * Berth in a cluster, with an agent on a node of its own or on each of many, whose pods are there before their ADD.
 * Effects: agents, objects in the API server.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { inParallel } from "../../test/lab/parallel.ts";
import { until } from "../../test/lab/waiting.ts";
import { pluginCalls } from "../ipam/contestant.ts";
import { type PeerIpam, perPodFile } from "../peers/peer-ipam.ts";
import { type NodePodsOptions, nodeNames, openNodePods } from "./pods.ts";

export const BERTH_AHEAD = "berth in a cluster, claimed ahead";
export const BERTH_PLAIN = "berth in a cluster, nothing claimed ahead";

export interface ClusterBerthOptions extends NodePodsOptions {
  /** Whether a network definition of the node names Berth, so that it claims when a pod is bound. */
  readonly isAhead: boolean;
  /** The network's; default: the cluster's. */
  readonly pool?: string;
  /** Number of addresses of a pod. Default: 1. */
  readonly families?: 1 | 2;
  /** Kubeconfig of the agents. Default: the plane's. */
  readonly kubeconfig?: string;
}

/** Until the API server has nothing more to do with the pods that were just created: it has the same processors. */
const QUIET_MS = 300;
/** Agents that start side by side. */
const AGENTS_AT_ONCE = 4;
const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";

/** With several nodes there is an agent on each, and neither claims nor releases are waited for. */
export async function openClusterBerth(options: ClusterBerthOptions): Promise<PeerIpam> {
  const { plane, place, node, spread, isAhead, pool, families = 1, kubeconfig = plane.kubeconfig } = options;
  await using stack = new AsyncDisposableStack();
  const network = networkOf(pool);
  const pods = await openNodePods(options);
  const cniConf = isAhead ? { "10-bench.conflist": network } : {};
  const agents = await inParallel(nodeNames(options), AGENTS_AT_ONCE, async (name): Promise<Agent> => {
    const agent = await startAgent({ kubeconfig, args: ["--node", name], cniConf });
    stack.defer(() => agent.delete());
    await until("the agent to be ready", async () => (await agent.request("/v1/health")).status === 200);
    return agent;
  });
  const stdinFile = join(place.directory, `berth-${node}.json`);
  const { plugins, ...frame } = network;
  await writeFile(stdinFile, JSON.stringify({ ...frame, ...plugins[0] }));
  const perNode = async (name: "socket" | "spool"): Promise<string> => {
    const texts = agents.map((agent) => agent[name]);
    return spread === undefined ? (texts[0] ?? "") : `{text:${await perPodFile({ ...options, name, texts })}}`;
  };
  const env = { ...pods.env, BERTH_SOCKET: await perNode("socket"), BERTH_SPOOL: await perNode("spool") };
  const records = async (): Promise<number> =>
    (await plane.client.get(spread === undefined ? `${ALLOCATIONS}?fieldSelector=spec.node%3D${node}` : ALLOCATIONS))
      .items.length;
  const opened = stack.move();
  return {
    name: isAhead ? BERTH_AHEAD : BERTH_PLAIN,
    ...pluginCalls(join(berthBin, "berth"), stdinFile, place, env),
    daemonPid: agents[0]?.pid,
    daemonPids: agents.map(({ pid }) => pid),
    records,
    prepare: async (first, count) => {
      await pods.create(first, count);
      if (spread !== undefined) return undefined;
      if (isAhead) await until("the claims", async () => (await records()) === families * count);
      await sleep(QUIET_MS);
      return undefined;
    },
    terminate: async (first, count) => {
      await pods.terminate(first, count);
      if (spread === undefined) await sleep(QUIET_MS);
    },
    finish: async (first, count) => {
      await pods.remove(first, count);
      if (spread === undefined) await until("the releases", async () => (await records()) === 0);
    },
    close: () => opened.disposeAsync(),
  };
}

/** A network definition that names Berth, and that pool of it unless it is the cluster's default. */
function networkOf(pool: string | undefined) {
  const ipam = { type: "berth", ...(pool === undefined ? {} : { default_ipv4_ippool: [pool] }) };
  return { cniVersion: "1.0.0", name: "bench", plugins: [{ type: "bridge", ipam }] };
}
