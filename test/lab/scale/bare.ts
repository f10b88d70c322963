/**
 * What the API server can do at best: objects of the same kind and size as an agent's, created through the agents' own connections
 * without any decision. They lie in an address space of their own and name no node, so that no agent watches them.
 */
import { randomUUID } from "node:crypto";
import { formatIp } from "../../../host/net/ip.ts";
import { allocationName, type IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import type { AgentNode } from "../cluster/agent-node.ts";
import { ALLOCATIONS, allocationObject, allocationSpec } from "../cluster/objects.ts";
import { inParallel } from "../parallel.ts";

const SPACE = "bare";
/** 10.0.0.0 */
const FIRST = 0x0a_00_00_00n;

function specOf(number: number): IpAllocationSpec {
  const holder = { namespace: "scale", pod: `pod-${number}`, podUid: randomUUID(), ifName: "eth0", node: SPACE };
  return allocationSpec(formatIp({ family: 4, value: FIRST + BigInt(number) }), {
    ...{ addressSpace: SPACE, prefixLength: 16, pool: "scale", node: SPACE },
    holders: [holder],
    since: new Date().toISOString(),
  });
}

/** Creates `count` of them from number `first` on; milliseconds of each. */
export async function createBare(
  nodes: readonly AgentNode[],
  { first, count, atOnce }: { first: number; count: number; atOnce: number },
): Promise<number[]> {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  return inParallel(numbers, atOnce, async (number) => {
    const body = allocationObject(specOf(number));
    const startMs = performance.now();
    await nodes[number % nodes.length]?.api.call({ method: "POST", path: ALLOCATIONS, body, lane: "pod" });
    return performance.now() - startMs;
  });
}

export async function deleteBare(nodes: readonly AgentNode[], count: number, atOnce: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => index);
  await inParallel(numbers, atOnce, async (number) => {
    const path = `${ALLOCATIONS}/${allocationName(specOf(number).ip, SPACE)}`;
    await nodes[number % nodes.length]?.api.call({ method: "DELETE", path });
  });
}
