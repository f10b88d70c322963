/**
 * Berth in a cluster with an agent on each of many nodes, which claim when a pod is bound, as a network definition of
 * theirs names Berth.
 * Effects: agents, objects in the API server.
 */
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { berthBin } from "../../test/lab/cnitool.ts";
import { inParallel } from "../../test/lab/parallel.ts";
import { until } from "../../test/lab/waiting.ts";
import { BERTH_AHEAD, networkOf } from "../cluster/berth.ts";
import { type NodePodsOptions, nodeNames, openNodePods } from "../cluster/pods.ts";
import { pluginCalls } from "../ipam/contestant.ts";
import { type PeerIpam, perPodFile } from "./peer-ipam.ts";

const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
/** Agents that start side by side. */
const AT_ONCE = 4;

export async function openBerthFleet(options: NodePodsOptions): Promise<PeerIpam> {
  const { plane, place } = options;
  const { kubeconfig } = plane;
  await using stack = new AsyncDisposableStack();
  const pods = await openNodePods(options);
  const network = networkOf(undefined);
  const agents = await inParallel(nodeNames(options), AT_ONCE, async (name): Promise<Agent> => {
    const cniConf = { "10-bench.conflist": network };
    const agent = await startAgent({ kubeconfig, args: ["--node", name], cniConf });
    stack.defer(() => agent.delete());
    await until("the agent to be ready", async () => (await agent.request("/v1/health")).status === 200);
    return agent;
  });
  const { plugins, ...frame } = network;
  const stdinFile = await perPodFile({
    ...{ place, node: options.node, name: "berth.json" },
    texts: [JSON.stringify({ ...frame, ...plugins[0] })],
  });
  const socket = await perPodFile({ ...options, name: "socket", texts: agents.map((agent) => agent.socket) });
  const spool = await perPodFile({ ...options, name: "spool", texts: agents.map((agent) => agent.spool) });
  const env = { ...pods.env, BERTH_SOCKET: `{text:${socket}}`, BERTH_SPOOL: `{text:${spool}}` };
  const opened = stack.move();
  return {
    name: BERTH_AHEAD,
    ...pluginCalls(`${berthBin}/berth`, stdinFile, place, env),
    prepare: async (first, count) => void (await pods.create(first, count)),
    terminate: async (first, count) => void (await pods.terminate(first, count)),
    finish: async (first, count) => void (await pods.remove(first, count)),
    daemonPid: undefined,
    daemonPids: agents.map(({ pid }) => pid),
    records: async () => (await plane.client.get(ALLOCATIONS)).items.length,
    close: () => opened.disposeAsync(),
  };
}
