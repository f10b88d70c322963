/**
 * The controller's collection on a real API server, and the agents that it asks: the test makes each sweep and moves
 * the clocks; the segment is a table. The rules are in test/unit/controller/gc.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { QUARANTINE_PROBE_MAX_MS } from "../../host/agent/detection/quarantine-prober.ts";
import { AgentNode } from "../lab/cluster/agent-node.ts";
import { GRACE_MS, type LabCollection, leadCollection, NODE_LOST_MS } from "../lab/cluster/collector.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import * as lab from "../lab/cluster/objects.ts";
import { probeDue } from "../lab/cluster/probe-due.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { recordLog } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
let collector: LabCollection;
/** Addresses that a machine answers for. */
const answering = new Set<string>();
const nodes: AgentNode[] = [];

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0, minLostMs: 0 });
  await world.namespace("shop");
  await world.pool("blue", { subnet: "10.6.0.0/16" });
  collector = await leadCollection(world);
});
afterAll(async () => {
  for (const node of nodes) await node.close();
  await world?.stop();
});

async function openNode(name: string): Promise<AgentNode> {
  await collector.setNode(name, "True");
  const node = await AgentNode.open(world.plane, name, { recorded: recordLog() });
  nodes.push(node);
  return node;
}

async function startPod(node: AgentNode, address: string): Promise<lab.LabPod> {
  const pod = await lab.createPod(world.client, { name: `pod-${address}`, node: node.name });
  await node.attach(address, pod);
  await collector.knows(address);
  return pod;
}

const ask = (node: AgentNode): Promise<void> => probeDue(node, answering);

const states = (...last: readonly number[]): Promise<string[]> =>
  Promise.all(last.map((each) => world.stateOf(`10.6.0.${each}`)));

it("conflict: after nodeLost another node asks: silence frees an address, an answer does not", async () => {
  const [one, two] = [await openNode("n1"), await openNode("n2")];
  await startPod(two, "10.6.0.9");
  const pods = [await startPod(one, "10.6.0.1"), await startPod(one, "10.6.0.2")];
  await one.stop();
  await collector.setNode("n1", "Unknown");
  for (const pod of pods) await lab.deletePod(world.client, pod);
  await collector.sweep(GRACE_MS, NODE_LOST_MS - 1);
  expect(await states(1, 2)).toEqual(["Quarantined n1", "Quarantined n1"]);
  await collector.sweep(1);
  expect(await world.spec("10.6.0.1")).toMatchObject({
    ...{ node: "n2", quarantine: { reason: "NodeLost", holder: { node: "n1" } } },
  });
  answering.add("10.6.0.2");
  await until("n2 is told", async () => (await two.rows()).length === 3);
  await ask(two);
  expect(await states(1, 2)).toEqual(["free", "Quarantined n2"]);
  // The machine is switched off at last.
  answering.clear();
  two.advance(QUARANTINE_PROBE_MAX_MS);
  await ask(two);
  expect(await states(2, 9)).toEqual(["free", "Bound n2"]);
});
