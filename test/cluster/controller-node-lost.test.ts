/**
 * A node is lost: what the controller, the node's own agent when it is back, and another node's agent do with its addresses, on a real API
 * server. The segment is a table: who answers for which address. Clocks and looks are the test's.
 */

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import {
  QUARANTINE_PROBE_MAX_MS,
  QuarantineProber,
  type QuarantineProberDeps,
} from "../../host/agent/detection/quarantine-prober.ts";
import { formatIp } from "../../host/net/ip.ts";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { recordLog } from "../unit/agent/recorded-log.ts";
import { ip } from "../unit/ipam/subjects.ts";
import { GarbageWorld, GRACE_MS, INTERVAL_MS, NODE_LOST_MS, OUT_OF_SERVICE, WEB } from "./garbage-world.ts";
import { COOLDOWN_MS, KeepingNode, requireMac } from "./keeping-node.ts";
import { ALLOCATIONS, until } from "./registry-world.ts";

const MAC = requireMac("02:00:00:00:00:07");
const LINK = { netnsPath: "/proc/self/ns/net", index: 2, name: "uplink", mac: requireMac("0a:00:00:00:00:01") };

let plane: ControlPlane;
let world: GarbageWorld;
const nodes: KeepingNode[] = [];
let podCount = 0;
/** Addresses that a machine answers for. */
const answering = new Set<string>();

beforeAll(async () => {
  world = await GarbageWorld.start();
  plane = world.plane;
});

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
  answering.clear();
  await world.clear();
});

afterAll(() => world?.close());

async function openNode(name: string): Promise<KeepingNode> {
  await world.setNode(name, "True");
  const node = await KeepingNode.open(plane, name);
  nodes.push(node);
  return node;
}

async function startPod(node: KeepingNode, address: string): Promise<lab.LabPod> {
  const pod = await lab.createPod(plane.client, { name: `pod-${++podCount}`, node: node.name });
  await node.attach(address, pod);
  await until("the controller knows it", () => world.controller.caches.allocations.items.has(address));
  return pod;
}

/** The node does not answer any more, and the control plane deletes these pods. */
async function loseNode(node: KeepingNode, pods: readonly lab.LabPod[]): Promise<void> {
  await node.stop();
  await world.setNode(node.name, "Unknown");
  for (const pod of pods) await lab.deletePod(plane.client, pod);
  await world.look();
  world.advance(GRACE_MS);
  await world.look();
}

/** As long as it takes until another node is told to ask. */
async function waitNodeLost(): Promise<void> {
  await world.look();
  world.advance(NODE_LOST_MS);
  await world.look();
}

/** What the janitor does, with all that is due by now. */
async function ask(node: KeepingNode): Promise<void> {
  await node.look();
  const tools: QuarantineProberDeps = {
    ...{ registry: node.registry, nowMs: node.nowMs, random: () => 0.5, log: recordLog().log, pools: () => new Map() },
    detect: async ({ addresses: [ip] }) =>
      ip !== undefined && answering.has(formatIp(ip)) ? { ip, mac: MAC } : undefined,
    findNodeLink: () => undefined,
    findPoolLink: async () => LINK,
  };
  const prober = new QuarantineProber(tools);
  await prober.probeDue();
  await prober.close();
  await node.registry.idle();
  await node.registry.expire();
  await node.registry.idle();
}

/** As the controller writes it, of a pod that it took for gone. */
async function takeForLost(address: string): Promise<void> {
  const { spec } = await plane.client.get(`${ALLOCATIONS}/${address}`);
  const quarantine = { reason: "NodeLost", holder: spec.holders[0] };
  await plane.client.patch(`${ALLOCATIONS}/${address}`, { spec: { state: "Quarantined", holders: [], quarantine } });
}

it.each(["its journal", "an empty disk"])(
  "node-lost: a lost node comes back with %s: the pod that lives has its address again, the other one's goes",
  async (disk) => {
    const one = await openNode("n1");
    const lives = await startPod(one, "10.6.0.1");
    const gone = await startPod(one, "10.6.0.2");
    await loseNode(one, [gone]);
    await takeForLost("10.6.0.1");
    expect([await world.stateOf("10.6.0.1"), await world.stateOf("10.6.0.2")]).toEqual([
      "Quarantined n1",
      "Quarantined n1",
    ]);
    if (disk === "an empty disk") one.wipe();
    await one.start();
    await one.look();
    await until("the pod has its own again", async () => (await world.stateOf("10.6.0.1")) === "Bound n1");
    expect((await world.spec("10.6.0.1"))?.holders).toMatchObject([{ podUID: lives.uid, node: "n1" }]);
    expect(await world.stateOf("10.6.0.2")).toBe("Quarantined n1");
    one.advance(GRACE_MS);
    await one.look();
    one.advance(COOLDOWN_MS);
    await one.look();
    expect([await world.stateOf("10.6.0.1"), await world.stateOf("10.6.0.2")]).toEqual(["Bound n1", "free"]);
  },
);

it("node-lost: an agent that was only cut off hears of it, and writes its live pod's address back at once", async () => {
  const one = await openNode("n1");
  await startPod(one, "10.6.0.1");
  await takeForLost("10.6.0.1");
  await until("it is written back", async () => {
    await one.parts.own.reconcile();
    return (await world.stateOf("10.6.0.1")) === "Bound n1";
  });
  expect(one.parts.lost.count).toBe(0);
});

it("conflict: after nodeLost another node asks: silence frees an address, an answer does not", async () => {
  const [one, two] = [await openNode("n1"), await openNode("n2")];
  await startPod(two, "10.6.0.9");
  const pods = [];
  for (let last = 1; last <= 3; last++) pods.push(await startPod(one, `10.6.0.${last}`));
  await loseNode(one, pods);
  await world.look();
  world.advance(NODE_LOST_MS - 1);
  await world.look();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  world.advance(1);
  await world.look();
  expect(await world.spec("10.6.0.1")).toMatchObject({
    node: "n2",
    quarantine: { reason: "NodeLost", holder: { node: "n1" } },
  });
  answering.add("10.6.0.2");
  await until("n2 hears of it", () => two.parts.own.stats.objects === 4);
  await ask(two);
  expect(await Promise.all([1, 2, 3].map((last) => world.stateOf(`10.6.0.${last}`)))).toEqual([
    "free",
    "Quarantined n2",
    "free",
  ]);
  expect(await world.spec("10.6.0.2")).toMatchObject({ quarantine: { reason: "NodeLost", holder: { node: "n1" } } });
  // The machine is switched off at last.
  answering.clear();
  two.advance(QUARANTINE_PROBE_MAX_MS);
  await ask(two);
  expect([await world.stateOf("10.6.0.2"), await two.rows()]).toEqual([
    "free",
    [expect.stringContaining("10.6.0.9 Bound")],
  ]);
});

it("node-lost: the lost node comes back while another one asks: its live pod has its address again, and the other forgets it", async () => {
  const [one, two] = [await openNode("n1"), await openNode("n2")];
  await startPod(two, "10.6.0.9");
  const lives = await startPod(one, "10.6.0.1");
  const gone = await startPod(one, "10.6.0.2");
  await loseNode(one, [gone]);
  await takeForLost("10.6.0.1");
  for (const address of ["10.6.0.1", "10.6.0.2"]) {
    const path = `${ALLOCATIONS}/${address}`;
    await plane.client.patch(path, { spec: { node: "n2" } });
    answering.add(address);
  }
  await until("n2 hears of it", () => two.parts.own.stats.objects === 3);
  await ask(two);
  expect(await two.rows()).toHaveLength(3);
  await world.setNode("n1", "True");
  await one.start();
  await one.look();
  await until("the pod has its own again", async () => (await world.stateOf("10.6.0.1")) === "Bound n1");
  expect((await world.spec("10.6.0.1"))?.holders).toMatchObject([{ podUID: lives.uid, node: "n1" }]);
  await until("n2 forgets it", async () => (await two.rows()).length === 2);
  // What nobody has is left to who asks, and nobody is told of a loss.
  one.advance(GRACE_MS);
  await one.look();
  one.advance(COOLDOWN_MS);
  await one.look();
  expect([await world.stateOf("10.6.0.2"), one.parts.lost.count, (await one.rows()).length]).toEqual([
    "Quarantined n2",
    0,
    1,
  ]);
  answering.clear();
  two.advance(QUARANTINE_PROBE_MAX_MS);
  await ask(two);
  expect(await world.stateOf("10.6.0.2")).toBe("free");
});

it("node-lost: the lost node is said to be out of service while another one asks: free, and not made again", async () => {
  const [one, two] = [await openNode("n1"), await openNode("n2")];
  await startPod(two, "10.6.0.9");
  await loseNode(one, [await startPod(one, "10.6.0.1")]);
  await waitNodeLost();
  answering.add("10.6.0.1");
  await until("n2 hears of it", () => two.parts.own.stats.objects === 2);
  await ask(two);
  expect([await world.stateOf("10.6.0.1"), (await two.rows()).length]).toEqual(["Quarantined n2", 2]);
  await world.setNode("n1", "Unknown", [OUT_OF_SERVICE]);
  await world.collector.checkDue();
  await until("n2 forgets it", async () => (await two.rows()).length === 1);
  await two.look();
  expect(await world.stateOf("10.6.0.1")).toBe("free");
});

it("conflict: the node that was told to ask goes, too: the next one is told, and one that cannot ask is not asked for ever", async () => {
  const [one, two, three] = [await openNode("n1"), await openNode("n2"), await openNode("n3")];
  await startPod(two, "10.6.0.8");
  const [own, lost] = [await startPod(three, "10.6.0.9"), await startPod(one, "10.6.0.1")];
  await loseNode(one, [lost]);
  await waitNodeLost();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n2");
  // n2 finds no link: after three times nodeLost it is n3's turn.
  await world.look();
  world.advance(3 * NODE_LOST_MS);
  await world.look();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n3");
  await loseNode(three, [own]);
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n2");
  await ask(two);
  expect(await world.stateOf("10.6.0.1")).toBe("free");
});

it("conflict: nobody attaches from the pool: the address stays, and the controller says so", async () => {
  const one = await openNode("n1");
  await loseNode(one, [await startPod(one, "10.6.0.1")]);
  await waitNodeLost();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  expect(world.collector.problems).toContain("No ready node can probe address 10.6.0.1, whose node is lost");
  world.advance(10 * INTERVAL_MS);
  await world.look();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  // An autoscaler deletes the Node. Who knows that the machine is off makes it again, with the taint, and says so by that.
  await world.deleteNode("n1");
  await world.look();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  await world.setNode("n1", "Unknown", [OUT_OF_SERVICE]);
  await world.look();
  expect(await world.stateOf("10.6.0.1")).toBe("free");
  await world.deleteNode("n1");
});

it("node-lost: a set has moved to another pool: what its member had on the lost node is asked for, and free when it is silent", async () => {
  const [one, two, three] = [await openNode("n1"), await openNode("n2"), await openNode("n3")];
  await startPod(three, "10.6.0.9");
  world.workloads.set(WEB.uid, "alive");
  const before = await lab.createPod(plane.client, { name: "web-0", node: "n1" });
  await one.attach("10.6.0.1", before, { workload: WEB });
  await until("the controller knows it", () => world.controller.caches.allocations.items.has("10.6.0.1"));
  await loseNode(one, [before]);
  expect(await world.spec("10.6.0.1")).toMatchObject({ state: "Quarantined", workload: { uid: WEB.uid } });
  // No pod of the member has another address: the next one may come back for this one.
  await waitNodeLost();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
  const after = await lab.createPod(plane.client, { name: "web-0", node: "n2" });
  const green = { space: "", ip: ip("10.7.0.1"), prefixLength: 16, pool: "green", ifName: "eth0" };
  await two.attach("10.7.0.1", after, { workload: WEB, proposals: [green] });
  await until("the controller knows it", () => world.controller.caches.allocations.items.has("10.7.0.1"));
  await waitNodeLost();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n3");
  answering.add("10.6.0.1");
  await until("n3 hears of it", () => three.parts.own.stats.objects === 2);
  await ask(three);
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n3");
  answering.clear();
  three.advance(QUARANTINE_PROBE_MAX_MS);
  await ask(three);
  expect([await world.stateOf("10.6.0.1"), await world.stateOf("10.7.0.1")]).toEqual(["free", "Bound n2"]);
});
