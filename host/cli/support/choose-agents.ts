/** Which agents of a cluster a support bundle asks, of thousands. */
import { compareText } from "../../lib/order.ts";

/** Most nodes whose own files a support bundle of a cluster has. The unhealthy come first, then the newest. @limit */
export const MAX_BUNDLE_NODES = 16;

/** An agent's pod. */
export interface AgentStatus {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly phase: string;
  readonly isReady: boolean;
  readonly restarts: number;
  readonly image: string;
  /** RFC 3339; "" if it has not started. */
  readonly startedAt: string;
}

/** Returns the agents in the order in which they say most about a fault, and how many of them are asked. */
export function chooseAgents(
  agents: readonly AgentStatus[],
  node: string | undefined,
): { readonly chosen: readonly AgentStatus[]; readonly others: readonly AgentStatus[] } {
  const ordered = agents.filter((agent) => node === undefined || agent.node === node).toSorted(compareAgents);
  return { chosen: ordered.slice(0, MAX_BUNDLE_NODES), others: ordered.slice(MAX_BUNDLE_NODES) };
}

function compareAgents(a: AgentStatus, b: AgentStatus): number {
  return (
    Number(a.isReady) - Number(b.isReady) ||
    Number(b.restarts > 0) - Number(a.restarts > 0) ||
    compareText(b.startedAt, a.startedAt) ||
    compareText(a.node, b.node)
  );
}
