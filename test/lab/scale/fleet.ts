/**
 * Many agents of a cluster in one process (agent-node.ts), each with connections, journal, thread and maintenance of its own.
 *
 *   await using fleet = await openFleet({ plane, nodes: 50, hasNetwork: true });
 */
import { AgentNode, BERTH_PLUGIN } from "../cluster/agent-node.ts";
import { NODES, nodeObject } from "../cluster/objects.ts";
import type { ControlPlane } from "../control-plane.ts";
import { inParallel } from "../parallel.ts";

export interface FleetOptions {
  readonly plane: ControlPlane;
  readonly nodes: number;
  /** Whether the nodes have a network definition that names Berth: without one nothing is claimed ahead of an ADD. */
  readonly hasNetwork: boolean;
  /** Of the nodes' names. Default: n. */
  readonly prefix?: string;
}

export interface Fleet extends AsyncDisposable {
  readonly nodes: readonly AgentNode[];
}

/** Agents that are opened side by side. */
const AT_ONCE = 8;

/** Resolves when all agents know the cluster's resources. */
export async function openFleet({ plane, nodes: count, hasNetwork, prefix = "n" }: FleetOptions): Promise<Fleet> {
  await using stack = new AsyncDisposableStack();
  const names = Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
  const plugin = hasNetwork ? BERTH_PLUGIN : undefined;
  const nodes = await inParallel(names, AT_ONCE, async (name) => {
    await plane.client.apply(`${NODES}/${name}`, nodeObject(name));
    const { kubeconfig } = plane;
    return stack.use(await AgentNode.open(plane, name, { plugin, kubeconfig, isMaintained: true }));
  });
  const opened = stack.move();
  return { nodes, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
