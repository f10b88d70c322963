/**
 * The API server's own part: one object of an allocation's kind and size created, and deleted, by a client that is
 * warm.
 * Effects: connections; objects in the API server.
 */

import { randomUUID } from "node:crypto";
import type { KubeCall } from "../../host/kubernetes/kube-api.ts";
import { API_PATH } from "../../host/resources/fields/metadata.ts";
import { allocationName, encodeIpAllocation, type IpAllocationSpec } from "../../host/resources/ip-allocation.ts";
import { connectClient } from "../../test/lab/cluster/in-process.ts";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { inParallel } from "../../test/lab/parallel.ts";
import type { BatchOutcome } from "../harness/runner.ts";
import type { Contestant, Work } from "../ipam/contestant.ts";
import { BARE_CREATE } from "../ipam/tabulate.ts";

const COLLECTION = `${API_PATH}/ipallocations`;
/** Address space and node of the objects: no agent looks after them. */
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
    add: work((number) => ({ method: "POST", path: COLLECTION, body: bareObject(number) })),
    del: work((number) => ({ method: "DELETE", path: barePath(number) })),
    daemonPid: undefined,
    close: () => api.close(),
  };
}

function barePath(number: number): string {
  return `${COLLECTION}/${allocationName(ipOf(number), SPACE)}`;
}

function bareObject(number: number): object {
  const holder = { namespace: "bench", pod: `${SPACE}-${number}`, podUid: randomUUID(), ifName: "eth0", node: SPACE };
  const spec: IpAllocationSpec = {
    ...{ ip: ipOf(number), addressSpace: SPACE, prefixLength: 16, pool: "bench", state: "Bound", node: SPACE },
    holders: [holder],
    since: new Date().toISOString(),
  };
  return encodeIpAllocation(spec);
}

/** From 10.0.0.0 on. */
function ipOf(number: number): IpAllocationSpec["ip"] {
  return { family: 4, value: 0x0a_00_00_00n + BigInt(number) };
}
