/**
 * Who has which processor: the API server and etcd the first, this process with all its agents the others. So the agents, which in a cluster
 * are on machines of their own, do not take the server's time, and what is measured is the server's rate.
 * Effects: the affinity of the threads of these processes.
 */
import { cpus } from "node:os";
import { requireCommand } from "../command.ts";
import type { ControlPlane } from "../control-plane.ts";

const SERVERS = "0";

/** Until disposed of. Nothing happens on a machine with one processor. */
export async function pinApart(plane: ControlPlane): Promise<AsyncDisposable> {
  const count = cpus().length;
  const all = `0-${count - 1}`;
  const pin = async (pid: number, list: string): Promise<void> => {
    if (count > 1) await requireCommand(["taskset", "--all-tasks", "--cpu-list", "--pid", list, `${pid}`]);
  };
  for (const pid of plane.pids) await pin(pid, SERVERS);
  await pin(process.pid, `1-${count - 1}`);
  return {
    [Symbol.asyncDispose]: async () => {
      for (const pid of [...plane.pids, process.pid]) await pin(pid, all);
    },
  };
}
