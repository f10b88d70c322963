/**
 * What passes between an IPAM and the API server for some pods: the IPAM is opened behind a proxy that counts.
 * Effects: a proxy, and what the IPAM does.
 */
import { startApiProxy } from "../../test/lab/cluster/api-proxy.ts";
import type { TallyRow } from "../../test/lab/cluster/api-tally.ts";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import type { Batch } from "../harness/runner.ts";
import type { Contestant } from "../ipam/contestant.ts";
import { measure } from "../ipam/measure.ts";

interface CountedRequests {
  readonly name: string;
  /**
   * By verb and resource, from before the pods were created until their addresses were free; without watches and what
   * a start needs.
   */
  readonly rows: readonly TallyRow[];
}

/**
 * Opens one contestant with the proxy's kubeconfig, has it serve `count` pods from number `first` on, and closes it.
 */
export async function countRequests(
  plane: ControlPlane,
  { atOnce, first, count }: Omit<Batch, "subject">,
  open: (kubeconfig: string) => Promise<Contestant>,
): Promise<CountedRequests> {
  await using stack = new AsyncDisposableStack();
  const proxy = await startApiProxy(plane);
  stack.defer(() => proxy.stop());
  const contestant = await open(proxy.kubeconfig);
  stack.defer(() => contestant.close());
  proxy.resetTally();
  await measure([contestant], { atOnce, callsPerRound: count, warmUpRounds: 0, rounds: 1 }, first);
  return { name: contestant.name, rows: proxy.tally().filter(({ verb }) => verb !== "watch") };
}
