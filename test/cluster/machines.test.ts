/**
 * Whose word counts for an address of a machine that has lost its node's name, on a real API server: another machine
 * under the name, the same one under a Node that was created again, and clones (docs/decisions/0053). The segment is a
 * table, as in controller-node-lost.test.ts.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { QuarantineProber } from "../../host/agent/detection/quarantine-prober.ts";
import { formatIp } from "../../host/net/ip.ts";
import { machineOf } from "../../host/resources/machine.ts";
import { AgentNode } from "../lab/cluster/agent-node.ts";
import { COOLDOWN_MS, GRACE_MS, type LabCollector, NODE_LOST_MS } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import { recordLog } from "../world/recorded-log.ts";
import { mac } from "../world/values.ts";
import { openCollector } from "./collected.ts";

const LINK = { netnsPath: "/proc/self/ns/net", index: 2, name: "uplink", mac: mac("0a:00:00:00:00:01") };

let world: World;
let collector: LabCollector;
const nodes: AgentNode[] = [];
let podCount = 0;
/** Addresses that a machine answers for. */
const answering = new Set<string>();

beforeAll(async () => {
  ({ world, collector } = await openCollector());
});

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
  answering.clear();
  await collector.clear();
});

afterAll(() => world?.stop());

/** The kubelet of a machine registers, and its agent starts. */
async function register(name: string, machine: string): Promise<AgentNode> {
  await report(name, machine);
  const node = await AgentNode.open(world.plane, name, { recorded: recordLog(), bootId: `boot of ${machine}` });
  nodes.push(node);
  return node;
}

async function report(name: string, machine: string): Promise<void> {
  await collector.setNode(name, "True");
  const nodeInfo = { machineID: idOf(machine), systemUUID: "4C4C4544-0051", bootID: `boot of ${machine}` };
  await world.client.patch(`${lab.NODES}/${name}/status`, { status: { nodeInfo } });
  const { nodes: known } = collector.controller.caches;
  await until("the controller knows the machine", () => known.items.get(name)?.machine === digestOf(machine));
}

/** A clone has the pair of its original. */
function idOf(machine: string): string {
  return machine.replace("clone of ", "");
}

function digestOf(machine: string): string | undefined {
  return machineOf({ systemUuid: "4C4C4544-0051", machineId: idOf(machine) });
}

async function startPod(node: AgentNode, address: string): Promise<lab.LabPod> {
  const pod = await lab.createPod(world.client, { name: `pod-${++podCount}`, node: node.name });
  await node.attach(address, pod);
  await collector.knows(address);
  return pod;
}

/** The machine is cut off, its Node is deleted, and so are its pods. */
async function loseMachine(node: AgentNode, ...pods: readonly lab.LabPod[]): Promise<void> {
  await node.stop();
  await collector.deleteNode(node.name);
  for (const pod of pods) await lab.deletePod(world.client, pod);
}

/** All that the agent's timers would do by then, also the janitor's probes. */
async function work(node: AgentNode, ...afterMs: readonly number[]): Promise<void> {
  for (const milliseconds of [0, ...afterMs]) {
    node.advance(milliseconds);
    await node.reconcile();
    const prober = new QuarantineProber({
      ...{ registry: node.registry, nowMs: node.nowMs, random: () => 0.5, log: recordLog().log },
      ...{ pools: () => new Map(), letAnswer: async () => {}, audit: NO_AUDIT },
      detect: async ({ addresses: [ip] }) =>
        ip !== undefined && answering.has(formatIp(ip)) ? { ip, mac: mac("02:00:00:00:00:07") } : undefined,
      findNodeLink: () => undefined,
      findPoolLink: async () => LINK,
    });
    await prober.probeDue();
    await prober.close();
    await node.registry.idle();
    await node.registry.expire();
    await node.registry.idle();
  }
}

it("node-lost: another machine under the node's name does not confirm, and asks the segment after nodeLost", async () => {
  const one = await register("n1", "m1");
  const pods = [await startPod(one, "10.6.0.1"), await startPod(one, "10.6.0.2")];
  expect((await world.spec("10.6.0.1"))?.holders).toMatchObject([{ node: "n1", machine: digestOf("m1") }]);
  await loseMachine(one, ...pods);
  const other = await register("n1", "m2");
  answering.add("10.6.0.1").add("10.6.0.2");
  await collector.sweep(GRACE_MS);
  expect(await world.spec("10.6.0.1")).toMatchObject({
    ...{ state: "Quarantined", node: "n1" },
    quarantine: { reason: "NodeLost", holder: { node: "n1", machine: digestOf("m1") } },
  });
  await work(other, GRACE_MS, COOLDOWN_MS);
  expect(await other.rows()).toEqual([]);
  answering.delete("10.6.0.2");
  await work(other, NODE_LOST_MS, COOLDOWN_MS);
  expect([await world.stateOf("10.6.0.1"), await world.stateOf("10.6.0.2")]).toEqual(["Quarantined n1", "free"]);
});

it("node-lost: another machine under the node's name leaves a pod's address, until the pod is gone and another node asks", async () => {
  const [one, two] = [await register("n1", "m1"), await register("n2", "m3")];
  await startPod(two, "10.6.0.9");
  const pod = await startPod(one, "10.6.0.1");
  await loseMachine(one);
  const other = await register("n1", "m2");
  answering.add("10.6.0.1");
  await expect(other.attach("10.6.0.1", pod)).rejects.toThrow("ended with taken");
  await work(other, GRACE_MS, COOLDOWN_MS);
  await collector.sweep(GRACE_MS);
  expect([await world.stateOf("10.6.0.1"), await other.rows()]).toEqual(["Bound n1", []]);
  await lab.deletePod(world.client, pod);
  await collector.sweep(GRACE_MS, NODE_LOST_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n2");
  await work(two, COOLDOWN_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n2");
  answering.clear();
  await work(two, NODE_LOST_MS, COOLDOWN_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("free");
});

it("node-lost: the same machine under a Node that was created again confirms, also without its journal", async () => {
  const one = await register("n1", "m1");
  const pod = await startPod(one, "10.6.0.1");
  await loseMachine(one, pod);
  await collector.sweep(GRACE_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  one.wipe();
  await report("n1", "m1");
  await one.start();
  await work(one, GRACE_MS, COOLDOWN_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("free");
});

it("node-lost: the disk of the machine on another one is no proof", async () => {
  const one = await register("n1", "m1");
  const pod = await startPod(one, "10.6.0.1");
  await loseMachine(one, pod);
  await report("n1", "m2");
  one.options = { recorded: recordLog(), bootId: "boot of m2" };
  await one.start();
  await work(one, COOLDOWN_MS);
  expect([await world.stateOf("10.6.0.1"), await one.rows()]).toEqual(["Bound n1", []]);
  expect(one.lines.join("\n")).toContain("The journal was another machine's");
});

it("node-lost: clones confirm nothing for each other, and are reported", async () => {
  const one = await register("n1", "m1");
  const pod = await startPod(one, "10.6.0.1");
  await loseMachine(one, pod);
  await collector.sweep(GRACE_MS);
  answering.add("10.6.0.1");
  await report("n2", "m1");
  const clone = await register("n1", "clone of m1");
  await work(clone, GRACE_MS, COOLDOWN_MS);
  await collector.sweep();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  expect(collector.gc.problems).toContain(
    'Nodes "n1", "n2" report the same systemUUID and machineID: give each machine its own; until then their lost addresses are freed only by a probe',
  );
  const told = collector.events.filter(({ reason }) => reason === "MachineShared");
  expect(told.map(({ regarding }) => regarding.name)).toEqual(["n1", "n2"]);
  expect(clone.cluster.readiness().problems.join()).toContain('as node "n2"');
  answering.clear();
  await work(clone, NODE_LOST_MS, COOLDOWN_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("free");
});
