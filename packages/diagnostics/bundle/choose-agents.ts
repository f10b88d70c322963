/** Chooses the few of a cluster's agents that a support bundle asks. */
import type { BerthPod } from "../../../host/cli/berth-pods.ts";
import { compareText } from "../../../host/lib/order.ts";

/** Most nodes whose own files a support bundle of a cluster has. The unhealthy come first, then the newest. @limit */
export const MAX_BUNDLE_NODES = 16;

/** Returns the agents in the order in which they say most about a fault, and how many of them are asked. */
export function chooseAgents(
  agents: readonly BerthPod[],
  node: string | undefined,
): { readonly chosen: readonly BerthPod[]; readonly others: readonly BerthPod[] } {
  const ordered = agents.filter((agent) => node === undefined || agent.node === node).toSorted(compareAgents);
  return { chosen: ordered.slice(0, MAX_BUNDLE_NODES), others: ordered.slice(MAX_BUNDLE_NODES) };
}

function compareAgents(a: BerthPod, b: BerthPod): number {
  return (
    Number(a.isReady) - Number(b.isReady) ||
    Number(b.restarts > 0) - Number(a.restarts > 0) ||
    compareText(b.startedAt, a.startedAt) ||
    compareText(a.node, b.node)
  );
}
