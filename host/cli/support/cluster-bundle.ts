/**
 * The files of a cluster's support bundle: what its API server has, its controllers, and the agents that say most
 * about a fault.
 */
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { AgentError } from "../ask-agent.ts";
import { type AskOptions, collectAgents, collectControllers } from "./agent-files.ts";
import type { BundleFile } from "./archive.ts";
import { chooseAgents } from "./choose-agents.ts";
import { collectClusterFiles, readBerthPods } from "./cluster-files.ts";

/** Largest support bundle of a cluster before it is compressed: bytes. */
export const MAX_CLUSTER_BUNDLE = 64 * 1024 * 1024;

/** Largest part of it for all nodes together: bytes. */
const MAX_BUNDLE_OF_NODES = 32 * 1024 * 1024;

/** Longest log of a controller in it: bytes. */
const MAX_CONTROLLER_LOG = 2 * 1024 * 1024;

interface ClusterBundleOptions extends AskOptions {
  readonly api: KubeApi;
  /** Only this node's agent. */
  readonly node: string | undefined;
  /** Facts of the caller's. */
  readonly about: object;
}

/** Rejects if the API server does not answer, or no agent is on the node. */
export async function collectClusterBundle({ api, node, about, ...ask }: ClusterBundleOptions): Promise<BundleFile[]> {
  const pods = await readBerthPods(api);
  const agents = pods.filter(({ component }) => component === "agent");
  const { chosen, others } = chooseAgents(agents, node);
  if (node !== undefined && chosen.length === 0) throw new AgentError(`No agent is on node "${node}"`);
  const cluster = await collectClusterFiles(api, pods, about);
  const controllers = pods.filter(({ component }) => component !== "agent");
  return [
    ...cluster,
    ...(await collectControllers(controllers, MAX_CONTROLLER_LOG, ask)),
    ...(await collectAgents(chosen, MAX_BUNDLE_OF_NODES, ask)),
    ...(others.length === 0 ? [] : [describeOthers(others.map((agent) => agent.node))]),
  ];
}

function describeOthers(nodes: readonly string[]): BundleFile {
  const note = `${nodes.length} healthy or older nodes were not asked; name one with --node`;
  return { path: "nodes/not-asked.txt", text: `${nodes.join("\n")}\n`, note };
}
