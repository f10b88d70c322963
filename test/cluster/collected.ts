/**
 * Shared parts of the tests of the controller's collection: a pool of 10.6.0.0/16, its allocations, and a workload
 * that owns some.
 */

import type { IpAllocationSpec } from "../../host/resources/ip-allocation.ts";
import type { Workload } from "../../host/resources/member.ts";
import { LabCollector } from "../lab/cluster/collector.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

export const WEB: Workload = {
  ...{ kind: "StatefulSet", namespace: "shop", name: "web", uid: "web-uid", member: "web-0", ifName: "eth0" },
};

export interface Collected {
  readonly world: World;
  readonly collector: LabCollector;
}

export async function openCollector(): Promise<Collected> {
  const world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0, minLostMs: 0 });
  await world.namespace("shop");
  await world.pool("blue", { subnet: "10.6.0.0/16" });
  return { world, collector: await LabCollector.open(world) };
}

/** Cooling on n1; the controller knows it. */
export async function allocate(
  { world, collector }: Collected,
  address: string,
  changes: Partial<IpAllocationSpec> = {},
): Promise<void> {
  await world.allocate(address, { state: "Cooling", prefixLength: 16, ...changes });
  await collector.knows(address);
}

/** Bound to the pod. */
export function bind(collected: Collected, address: string, pod: LabPod, changes: Partial<IpAllocationSpec> = {}) {
  const { namespace, name, uid, node } = pod;
  const holder = { namespace, pod: name, podUid: uid, ifName: "eth0", node };
  return allocate(collected, address, { state: "Bound", node, holders: [holder], ...changes });
}
