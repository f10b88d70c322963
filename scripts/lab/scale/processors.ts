/**
 * The control plane as if on a machine of its own: etcd and the API server get a fixed part of one processor, the agents, which in a cluster are on other
 * machines, what they need of the rest. So what is measured is the server's rate, not how the three share this machine.
 * Effects: a cgroup while it lasts; those of these processes.
 */
import type { ControlPlane } from "../control-plane.ts";
import { limitProcessor } from "../nodes/cgroups.ts";

/** Less than what the agents leave of two processors at the rate of claims that this allows. */
export const SERVER_SHARE = 0.5;

/** Until disposed of. */
export function setApart(plane: ControlPlane): Promise<AsyncDisposable> {
  return limitProcessor(`berth-${process.pid}-plane`, plane.pids, SERVER_SHARE);
}
