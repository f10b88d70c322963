/**
 * A node is lost: what the controller, the node's own agent when it is back, and another node's agent do with its
 * addresses, on a real API server.
 */

import { expect, it } from "vitest";
import { QUARANTINE_PROBE_MAX_MS } from "../../host/agent/detection/quarantine-prober.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import { COOLDOWN_MS, GRACE_MS, INTERVAL_MS, NODE_LOST_MS } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import { until } from "../lab/waiting.ts";
import { Segment } from "./segment.ts";

const segment = new Segment();

async function openNode(name: string): Promise<AgentNode> {
  await segment.collector.setNode(name, "True");
  return segment.openNode(name);
}

/** The node does not answer any more, and the control plane deletes these pods. */
async function loseNode(node: AgentNode, pods: readonly lab.LabPod[]): Promise<void> {
  await node.stop();
  await segment.collector.setNode(node.name, "Unknown");
  for (const pod of pods) await lab.deletePod(segment.world.client, pod);
  await segment.collector.sweep(GRACE_MS);
}

/** Time until another node is chosen to probe. */
async function waitNodeLost(): Promise<void> {
  await segment.collector.sweep(NODE_LOST_MS);
}

/** As the controller writes it, of a pod that it took for gone. */
async function takeForLost(address: string): Promise<void> {
  const { spec } = await segment.world.client.get(`${lab.ALLOCATIONS}/${address}`);
  const quarantine = { reason: "NodeLost", holder: spec.holders[0] };
  await segment.world.client.patch(`${lab.ALLOCATIONS}/${address}`, {
    spec: { state: "Quarantined", holders: [], quarantine },
  });
}

it.each(["its journal", "an empty disk"])(
  "node-lost: a lost node comes back with %s: the pod that lives has its address again, the other one's goes",
  async (disk) => {
    const one = await openNode("n1");
    const lives = await segment.startPod(one, "10.6.0.1");
    const gone = await segment.startPod(one, "10.6.0.2");
    await loseNode(one, [gone]);
    await takeForLost("10.6.0.1");
    expect([await segment.world.stateOf("10.6.0.1"), await segment.world.stateOf("10.6.0.2")]).toEqual([
      "Quarantined n1",
      "Quarantined n1",
    ]);
    if (disk === "an empty disk") one.wipe();
    await one.start();
    await one.reconcile();
    await until("the pod has its own again", async () => (await segment.world.stateOf("10.6.0.1")) === "Bound n1");
    expect((await segment.world.spec("10.6.0.1"))?.holders).toMatchObject([{ podUID: lives.uid, node: "n1" }]);
    expect(await segment.world.stateOf("10.6.0.2")).toBe("Quarantined n1");
    one.advance(GRACE_MS);
    await one.reconcile();
    one.advance(COOLDOWN_MS);
    await one.reconcile();
    expect([await segment.world.stateOf("10.6.0.1"), await segment.world.stateOf("10.6.0.2")]).toEqual([
      "Bound n1",
      "free",
    ]);
  },
);

it("node-lost: an agent that was only cut off is told, and writes its live pod's address back at once", async () => {
  const one = await openNode("n1");
  await segment.startPod(one, "10.6.0.1");
  await takeForLost("10.6.0.1");
  await until("it is written back", async () => (await segment.world.stateOf("10.6.0.1")) === "Bound n1");
  expect(one.cluster.allocations.stats.lost).toBe(0);
});

it("conflict: after nodeLost another node asks: silence frees an address, an answer does not", async () => {
  const [one, two] = [await openNode("n1"), await openNode("n2")];
  await segment.startPod(two, "10.6.0.9");
  const pods = [];
  for (let last = 1; last <= 3; last++) pods.push(await segment.startPod(one, `10.6.0.${last}`));
  await loseNode(one, pods);
  await segment.collector.sweep(NODE_LOST_MS - 1);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  segment.collector.advance(1);
  await segment.collector.sweep();
  expect(await segment.world.spec("10.6.0.1")).toMatchObject({
    node: "n2",
    quarantine: { reason: "NodeLost", holder: { node: "n1" } },
  });
  segment.answering.add("10.6.0.2");
  await until("n2 is told", async () => (await two.rows()).length === 4);
  await segment.ask(two);
  expect(await Promise.all([1, 2, 3].map((last) => segment.world.stateOf(`10.6.0.${last}`)))).toEqual([
    "free",
    "Quarantined n2",
    "free",
  ]);
  expect(await segment.world.spec("10.6.0.2")).toMatchObject({
    quarantine: { reason: "NodeLost", holder: { node: "n1" } },
  });
  // The machine is switched off at last.
  segment.answering.clear();
  two.advance(QUARANTINE_PROBE_MAX_MS);
  await segment.ask(two);
  expect([await segment.world.stateOf("10.6.0.2"), await two.rows()]).toEqual([
    "free",
    [expect.stringContaining("10.6.0.9 Bound")],
  ]);
});

it("node-lost: the lost node comes back while another one asks: its live pod has its address again, and the other forgets it", async () => {
  const [one, two] = [await openNode("n1"), await openNode("n2")];
  await segment.startPod(two, "10.6.0.9");
  const lives = await segment.startPod(one, "10.6.0.1");
  const gone = await segment.startPod(one, "10.6.0.2");
  await loseNode(one, [gone]);
  await takeForLost("10.6.0.1");
  for (const address of ["10.6.0.1", "10.6.0.2"]) {
    const path = `${lab.ALLOCATIONS}/${address}`;
    await segment.world.client.patch(path, { spec: { node: "n2" } });
    segment.answering.add(address);
  }
  await until("n2 is told", async () => (await two.rows()).length === 3);
  await segment.ask(two);
  expect(await two.rows()).toHaveLength(3);
  await segment.collector.setNode("n1", "True");
  await one.start();
  await one.reconcile();
  await until("the pod has its own again", async () => (await segment.world.stateOf("10.6.0.1")) === "Bound n1");
  expect((await segment.world.spec("10.6.0.1"))?.holders).toMatchObject([{ podUID: lives.uid, node: "n1" }]);
  await until("n2 forgets it", async () => (await two.rows()).length === 2);
  // A free address goes to the pod that claims it, and no loss is reported.
  one.advance(GRACE_MS);
  await one.reconcile();
  one.advance(COOLDOWN_MS);
  await one.reconcile();
  expect([
    await segment.world.stateOf("10.6.0.2"),
    one.cluster.allocations.stats.lost,
    (await one.rows()).length,
  ]).toEqual(["Quarantined n2", 0, 1]);
  segment.answering.clear();
  two.advance(QUARANTINE_PROBE_MAX_MS);
  await segment.ask(two);
  expect(await segment.world.stateOf("10.6.0.2")).toBe("free");
});

it("conflict: no node attaches from the pool: the address stays, and the controller says so", async () => {
  const one = await openNode("n1");
  await loseNode(one, [await segment.startPod(one, "10.6.0.1")]);
  await waitNodeLost();
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  expect(segment.collector.gc.problems).toContain("No ready node can probe address 10.6.0.1, whose node is lost");
  segment.collector.advance(10 * INTERVAL_MS);
  await segment.collector.sweep();
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  // An autoscaler deletes the Node. Who knows that the machine is off makes it again, with the taint, and says so by
  // that.
  await segment.collector.deleteNode("n1");
  await segment.collector.sweep();
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  await segment.collector.setNode("n1", "Unknown", [lab.OUT_OF_SERVICE]);
  await segment.collector.sweep();
  expect(await segment.world.stateOf("10.6.0.1")).toBe("free");
  await segment.collector.deleteNode("n1");
});
