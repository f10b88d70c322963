/**
 * What the controller takes from members: addresses that are retained for no pod that has ever been there, and for NICs
 * that their pods do not have. On a real API server; the test makes each sweep and moves the clock.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { Holder, IpAllocationSpec } from "../../host/resources/ip-allocation.ts";
import type { LabCollector } from "../lab/cluster/collector.ts";
import { GRACE_MS, INTERVAL_MS, NODE_LOST_MS } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { allocate, bind, openCollector, WEB } from "./collected.ts";

let world: World;
let collector: LabCollector;

beforeAll(async () => {
  ({ world, collector } = await openCollector());
});
afterEach(() => collector.clear());
afterAll(() => world?.stop());

const SILENCE_MS = 2 * INTERVAL_MS + NODE_LOST_MS;
const OWNER = { apiVersion: "apps/v1", kind: "StatefulSet", name: WEB.name, uid: WEB.uid };
const MADE_UP: Holder = { namespace: "shop", pod: "web-0", podUid: "made-up", ifName: "eth0", node: "n1" };

const createMember = (annotations: lab.PodSpec["annotations"] = {}) =>
  lab.createPod(world.client, { name: "web-0", node: "n1", owner: OWNER, annotations });

const keep = (address: string, changes: Partial<IpAllocationSpec> = {}): Promise<void> =>
  allocate({ world, collector }, address, { state: "Kept", workload: WEB, ...changes });

/** A process begins to lead now, and knows the cluster as it is. */
async function lead(): Promise<void> {
  await collector.lead();
  collector.liveness.set(WEB.uid, "alive");
  await collector.sweep();
}

it("retention: a holder that was no pod: its address cools after a grace, and not before", async () => {
  await lead();
  await keep("10.6.0.1", { lastHolder: MADE_UP });
  const { metadata } = await world.client.get(`${lab.ALLOCATIONS}/10.6.0.1`);
  const { pods } = collector.controller.deps.owners;
  await collector.sweep(GRACE_MS);
  expect([pods.hasReached(metadata.resourceVersion), await world.stateOf("10.6.0.1")]).toEqual([false, "Kept n1"]);
  await world.createPod({ name: "any", node: "n1" });
  await until("the watch of pods has come past the record", () => pods.hasReached(metadata.resourceVersion));
  await collector.sweep(GRACE_MS - 1);
  expect(await world.stateOf("10.6.0.1")).toBe("Kept n1");
  collector.advance(1);
  await collector.sweep();
  expect(await world.stateOf("10.6.0.1")).toBe("Cooling n1");
});

it("retention: the address of a pod that the controller has watched stays, however short the pod's life was", async () => {
  await lead();
  const pod = await createMember();
  await lab.deletePod(world.client, pod);
  await until("the watch has told of the pod", () => collector.controller.deps.owners.pods.wasSeen(pod.uid));
  await keep("10.6.0.1", { lastHolder: { ...MADE_UP, podUid: pod.uid } });
  await collector.sweep(GRACE_MS, SILENCE_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("Kept n1");
});

it("retention: a controller that has just begun has seen little: what there is already stays", async () => {
  await keep("10.6.0.1", { lastHolder: { ...MADE_UP, podUid: "before" } });
  const bound = { ...MADE_UP, podUid: "bound-before" };
  await allocate({ world, collector }, "10.6.0.2", { state: "Bound", holders: [bound], workload: WEB });
  await lead();
  const { podUid: podUID, ifName, ...names } = bound;
  const spec = { state: "Kept", holders: [], lastHolder: { ...names, podUID, interface: ifName } };
  await world.client.patch(`${lab.ALLOCATIONS}/10.6.0.2`, { spec });
  await collector.sweep(GRACE_MS, SILENCE_MS);
  expect(await Promise.all([1, 2].map((last) => world.stateOf(`10.6.0.${last}`)))).toEqual(["Kept n1", "Kept n1"]);
});

it("retention: an address without a last holder, as an older agent retains it, stays", async () => {
  await lead();
  await keep("10.6.0.1");
  await collector.sweep(GRACE_MS, SILENCE_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("Kept n1");
});

it("retention: what is retained for a NIC that the member's pod does not have cools, and what it announces stays", async () => {
  await lead();
  const pod = await createMember({ "k8s.v1.cni.cncf.io/networks": "lan@net1" });
  await bind({ world, collector }, "10.6.0.1", pod, { workload: WEB });
  await keep("10.6.0.2", { workload: { ...WEB, ifName: "zz9" } });
  await keep("10.6.0.3", { workload: { ...WEB, ifName: "net1" } });
  await keep("10.6.0.4", { workload: { ...WEB, member: "web-1", ifName: "zz9" } });
  await collector.sweep(SILENCE_MS - 1);
  expect(await world.stateOf("10.6.0.2")).toBe("Kept n1");
  collector.advance(1);
  await collector.sweep();
  expect(await Promise.all([1, 2, 3, 4].map((last) => world.stateOf(`10.6.0.${last}`)))).toEqual([
    "Bound n1",
    "Cooling n1",
    "Kept n1",
    "Kept n1",
  ]);
});
