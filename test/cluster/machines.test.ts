/**
 * Whose word counts for an address of a machine that has lost its node's name, on a real API server: another machine
 * under the name, the same one under a Node that was created again, and clones (docs/decisions/0053).
 */
import { expect, it } from "vitest";
import { machineOf } from "../../host/resources/machine.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import { COOLDOWN_MS, GRACE_MS, NODE_LOST_MS } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import { until } from "../lab/waiting.ts";
import { recordLog } from "../world/recorded-log.ts";
import { Segment } from "./segment.ts";

const segment = new Segment();

/** The kubelet of a machine registers, and its agent starts. */
async function register(name: string, machine: string): Promise<AgentNode> {
  await report(name, machine);
  return segment.openNode(name, { bootId: `boot of ${machine}` });
}

async function report(name: string, machine: string): Promise<void> {
  await segment.collector.setNode(name, "True");
  const nodeInfo = { machineID: idOf(machine), systemUUID: "4C4C4544-0051", bootID: `boot of ${machine}` };
  await segment.world.client.patch(`${lab.NODES}/${name}/status`, { status: { nodeInfo } });
  const { nodes: known } = segment.collector.controller.caches;
  await until("the controller knows the machine", () => known.items.get(name)?.machine === digestOf(machine));
}

/** A clone has the pair of its original. */
function idOf(machine: string): string {
  return machine.replace("clone of ", "");
}

function digestOf(machine: string): string | undefined {
  return machineOf({ systemUuid: "4C4C4544-0051", machineId: idOf(machine) });
}

/** The machine is cut off, its Node is deleted, and so are its pods. */
async function loseMachine(node: AgentNode, ...pods: readonly lab.LabPod[]): Promise<void> {
  await node.stop();
  await segment.collector.deleteNode(node.name);
  for (const pod of pods) await lab.deletePod(segment.world.client, pod);
}

/** All that the agent's timers would do by then, also the janitor's probes. */
async function work(node: AgentNode, ...afterMs: readonly number[]): Promise<void> {
  for (const milliseconds of [0, ...afterMs]) {
    node.advance(milliseconds);
    await segment.ask(node);
  }
}

it("node-lost: another machine under the node's name does not confirm, and asks the segment after nodeLost", async () => {
  const one = await register("n1", "m1");
  const pods = [await segment.startPod(one, "10.6.0.1"), await segment.startPod(one, "10.6.0.2")];
  expect((await segment.world.spec("10.6.0.1"))?.holders).toMatchObject([{ node: "n1", machine: digestOf("m1") }]);
  await loseMachine(one, ...pods);
  const other = await register("n1", "m2");
  segment.answering.add("10.6.0.1").add("10.6.0.2");
  await segment.collector.sweep(GRACE_MS);
  expect(await segment.world.spec("10.6.0.1")).toMatchObject({
    ...{ state: "Quarantined", node: "n1" },
    quarantine: { reason: "NodeLost", holder: { node: "n1", machine: digestOf("m1") } },
  });
  await work(other, GRACE_MS, COOLDOWN_MS);
  expect(await other.rows()).toEqual([]);
  segment.answering.delete("10.6.0.2");
  await work(other, NODE_LOST_MS, COOLDOWN_MS);
  expect([await segment.world.stateOf("10.6.0.1"), await segment.world.stateOf("10.6.0.2")]).toEqual([
    "Quarantined n1",
    "free",
  ]);
});

it("node-lost: another machine under the node's name leaves a pod's address, until the pod is gone and another node asks", async () => {
  const [one, two] = [await register("n1", "m1"), await register("n2", "m3")];
  await segment.startPod(two, "10.6.0.9");
  const pod = await segment.startPod(one, "10.6.0.1");
  await loseMachine(one);
  const other = await register("n1", "m2");
  segment.answering.add("10.6.0.1");
  await expect(other.attach("10.6.0.1", pod)).rejects.toThrow("ended with taken");
  await work(other, GRACE_MS, COOLDOWN_MS);
  await segment.collector.sweep(GRACE_MS);
  expect([await segment.world.stateOf("10.6.0.1"), await other.rows()]).toEqual(["Bound n1", []]);
  await lab.deletePod(segment.world.client, pod);
  await segment.collector.sweep(GRACE_MS, NODE_LOST_MS);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n2");
  await work(two, COOLDOWN_MS);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n2");
  segment.answering.clear();
  await work(two, NODE_LOST_MS, COOLDOWN_MS);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("free");
});

it("node-lost: the same machine under a Node that was created again confirms, also without its journal", async () => {
  const one = await register("n1", "m1");
  const pod = await segment.startPod(one, "10.6.0.1");
  await loseMachine(one, pod);
  await segment.collector.sweep(GRACE_MS);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  one.wipe();
  await report("n1", "m1");
  await one.start();
  await work(one, GRACE_MS, COOLDOWN_MS);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("free");
});

it("node-lost: the disk of the machine on another one is no proof", async () => {
  const one = await register("n1", "m1");
  const pod = await segment.startPod(one, "10.6.0.1");
  await loseMachine(one, pod);
  await report("n1", "m2");
  one.options = { recorded: recordLog(), bootId: "boot of m2" };
  await one.start();
  await work(one, COOLDOWN_MS);
  expect([await segment.world.stateOf("10.6.0.1"), await one.rows()]).toEqual(["Bound n1", []]);
  expect(one.lines.join("\n")).toContain("The journal was another machine's");
});

it("node-lost: clones confirm nothing for each other, and are reported", async () => {
  const one = await register("n1", "m1");
  const pod = await segment.startPod(one, "10.6.0.1");
  await loseMachine(one, pod);
  await segment.collector.sweep(GRACE_MS);
  segment.answering.add("10.6.0.1");
  await report("n2", "m1");
  const clone = await register("n1", "clone of m1");
  await work(clone, GRACE_MS, COOLDOWN_MS);
  await segment.collector.sweep();
  expect(await segment.world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  expect(segment.collector.gc.problems).toContain(
    'Nodes "n1", "n2" report the same systemUUID and machineID: give each machine its own; until then their lost addresses are freed only by a probe',
  );
  const told = segment.collector.events.filter(({ reason }) => reason === "MachineShared");
  expect(told.map(({ regarding }) => regarding.name)).toEqual(["n1", "n2"]);
  expect(clone.cluster.readiness().problems.join()).toContain('as node "n2"');
  segment.answering.clear();
  await work(clone, NODE_LOST_MS, COOLDOWN_MS);
  expect(await segment.world.stateOf("10.6.0.1")).toBe("free");
});
