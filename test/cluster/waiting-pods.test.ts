/** Pods of a node whose agent is being replaced: agents' pods as a DaemonSet leaves them, on a real API server. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startWaitingPods } from "../../host/controller/waiting-pods-controller.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { eventually } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PODS = "/api/v1/namespaces/kube-system/pods";
const LABELS = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": "agent" };

let world: World;
const events: KubeEvent[] = [];

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane, nodes: [], pools: [] });
  for (const node of ["w1", "w2"]) {
    const spec = { nodeName: node, hostNetwork: true, containers: [{ name: "agent", image: "agent" }] };
    const metadata = { name: `agent-${node}`, labels: LABELS };
    await world.client.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec });
    await setReady(node, "True");
  }
  await world.lead({ waiting: startWaitingPods }, { events });
});
afterAll(() => world?.stop());

const setReady = (node: string, status: string) =>
  world.client.patch(`${PODS}/agent-${node}/status`, { status: { conditions: [{ type: "Ready", status }] } });

it("are told after five seconds, once, where they wait; others are not", async () => {
  const [waits, , has] = await Promise.all([
    world.createPod({ name: "waits", node: "w1" }),
    world.createPod({ name: "elsewhere", node: "w2" }),
    world.createPod({ name: "has", node: "w1" }),
  ]);
  const address = { podIP: "10.6.0.9", podIPs: [{ ip: "10.6.0.9" }] };
  await world.client.patch(`/api/v1/namespaces/${has.namespace}/pods/has/status`, { status: address });
  await setReady("w1", "False");
  const beganMs = performance.now();
  await eventually(() => events.length > 0, Boolean, 12_000);
  const tookMs = performance.now() - beganMs;
  expect(events.map(({ regarding, reason }) => `${regarding.name} ${reason}`)).toEqual(["waits WaitsForAgent"]);
  expect(events[0]?.regarding).toMatchObject({ namespace: waits.namespace, uid: waits.uid });
  expect(events[0]?.note).toContain('the Berth agent of node "w1", which is being replaced');
  expect([tookMs > 4_500, tookMs < 9_000], `${tookMs} ms`).toEqual([true, true]);
});
