/**
 * The API server's own part: one object of an allocation's kind and size created, and deleted, by a client that is
 * warm.
 * Effects: connections; objects in the API server.
 */

import type { KubeCall } from "../../host/kubernetes/kube-api.ts";
import { connectClient } from "../../test/lab/cluster/in-process.ts";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { inParallel } from "../../test/lab/parallel.ts";
import type { BatchOutcome } from "../harness/runner.ts";
import type { Contestant, Work } from "../ipam/contestant.ts";
import { BARE_CREATE } from "../ipam/tabulate.ts";
import { bareObject, barePath, COLLECTION } from "./bare-object.ts";

const SPACE = "bare";

export async function openBareCreate(plane: ControlPlane): Promise<Contestant<Work>> {
  const api = await connectClient(plane.kubeconfig, "bench");
  const work =
    (callOf: (number: number) => KubeCall): Work =>
    async ({ first, count, atOnce }): Promise<BatchOutcome> => {
      const numbers = Array.from({ length: count }, (_, index) => first + index);
      const startMs = performance.now();
      const samples = await inParallel(numbers, atOnce, async (number) => {
        const beginMs = performance.now();
        await api.call({ ...callOf(number), lane: "pod" });
        const wallMs = performance.now() - beginMs;
        return { wallMs, cpuMs: 0, stepMs: [wallMs] };
      });
      return { wallMs: performance.now() - startMs, samples };
    };
  return {
    name: BARE_CREATE,
    add: work((number) => ({ method: "POST", path: COLLECTION, body: bareObject(SPACE, number) })),
    del: work((number) => ({ method: "DELETE", path: barePath(SPACE, number) })),
    daemonPid: undefined,
    close: () => api.close(),
  };
}
