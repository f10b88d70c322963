/**
 * Measures the control plane as if it had a machine of its own: etcd and the API server get a fixed part of one processor, and the agents, which run on
 * other machines in a cluster, use the rest. The measured rate is then the server's, not that of programs that compete for this machine.
 * Effects: a cgroup, until disposed of; the cgroups of etcd and the API server.
 */
import type { ControlPlane } from "../control-plane.ts";
import { limitProcessor } from "../nodes/cgroups.ts";

/** Part of one processor. On two processors the agents have enough left for the rate of claims that this part allows. */
export const SERVER_SHARE = 0.5;

/** Limits etcd and the API server until disposed of. */
export function setApart(plane: ControlPlane): Promise<AsyncDisposable> {
  return limitProcessor(`berth-${process.pid}-plane`, plane.pids, SERVER_SHARE);
}
