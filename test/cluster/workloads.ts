/**
 * Agents of several nodes beside workloads that are plain objects: the test is the controllers of StatefulSets,
 * machines and claims.
 */
import type { Add } from "../lab/cluster/agent-node.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import { applyWorkloadKinds } from "../lab/cluster/workload-kinds.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

export const QUICK = {
  enableIPv6: false,
  allocationCooldown: "1s",
  garbageCollection: { interval: "2s", grace: "1s" },
};

/** Ready nodes, the default pool blue, 10.6.0.0/24, and green, 10.7.0.0/24; the world's whole history is checked. */
export async function openAgents(names: readonly string[]): Promise<World> {
  const world = await openWorld(borrowPlane);
  try {
    await applyWorkloadKinds(world.client);
    await world.namespace("shop");
    await world.settings(QUICK);
    await world.pool("blue", { subnet: "10.6.0.0/24", default: true });
    await world.pool("green", { subnet: "10.7.0.0/24" });
    for (const name of names) {
      await world.setNode(name, "True");
      await world.openAgent(name);
    }
    await followWorld(world, { endsWithPods: true });
    return world;
  } catch (error) {
    await world.stop();
    throw error;
  }
}

/** The ADD of one NIC, each in a sandbox of its own; returns its addresses. */
export async function add(world: World, pod: LabPod, call: Add = {}): Promise<readonly string[]> {
  return (await world.agent(pod.node).add(pod, { containerId: crypto.randomUUID(), ...call })).ips;
}
