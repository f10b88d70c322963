/**
 * Addresses under faults of an agent: it is killed, loses its journal, or finds that an object was deleted by hand;
 * and two agents want the last address.
 */
import { mkdir, rm } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startNotices } from "../../host/controller/notices/notice-controller.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { ALLOCATIONS, boundObject } from "../lab/cluster/objects.ts";
import { forceDelete } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { fightForFew } from "./fault-few.ts";
import { died, killAtEffects, restart } from "./fault-kills.ts";
import {
  attach,
  drainAll,
  endAll,
  endPod,
  expectOwned,
  insist,
  objectOf,
  objectsOf,
  pardon,
  pause,
  RECOVERY_MS,
  report,
  startPod,
} from "./fault-questions.ts";
import { startPods, storm } from "./fault-storm.ts";

/**
 * No watch of a node reports that another node's object is gone: the node checks every 10 s while it has lost an
 * address.
 */
const SEEN_AGAIN_MS = 15_000;

const SEED = Number(process.env.BERTH_SEED ?? 7);

let world: World;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1", "n2"],
    isObserved: true,
    pools: [{ name: "blue", subnet: "10.6.0.0/23" }],
  });
  await followWorld(world);
});

afterEach(async () => {
  for (const node of world.nodes()) {
    node.proxy.rules.clear();
    node.proxy.releaseWatches();
    if (await died(node, 0)) await restart(node);
  }
  await endAll(world);
});

afterAll(async () => {
  await drainAll(world).finally(() => world?.stop());
});

it("of two agents one gets the last address, the other is refused, and gets it when it is free", async () => {
  await world.pool("last", { subnet: "10.7.0.0/24", ips: ["10.7.0.7"] });
  for (const isAhead of [true, false]) {
    for (const { proxy } of world.nodes()) if (!isAhead) proxy.holdWatches();
    const annotations = { ippool: { ipv4: ["last"] } };
    const pods = await Promise.all(
      ["n1", "n2"].map((node) => world.createPod({ name: `last-${isAhead}-${node}`, node, annotations })),
    );
    const outcomes = await Promise.all(pods.map((pod) => world.node(pod.node).runtime.attach(pod, { limitMs: 1_000 })));
    expect(outcomes.map(({ addresses }) => addresses.length).sort()).toEqual([0, 1]);
    const refused = outcomes.findIndex(({ addresses }) => addresses.length === 0);
    expect(outcomes[refused]?.refusal).toMatch(/last/);
    const [winner, loser] = [pods[1 - refused], pods[refused]];
    if (winner === undefined || loser === undefined) throw new Error("There are two pods");
    for (const { proxy } of world.nodes()) proxy.releaseWatches();
    await endPod(world, winner);
    const start = performance.now();
    expect((await attach(world, world.node(loser.node), loser)).address).toBe("10.7.0.7");
    report("last address", { waitedMs: performance.now() - start });
    expect(performance.now() - start).toBeLessThan(RECOVERY_MS);
    await endPod(world, loser);
    await world.untilClean();
  }
});

it("an agent is killed when its create was carried out and before the answer arrives", async () => {
  const node = world.node("n1");
  node.proxy.holdWatches();
  const pod = await world.createPod({ name: "orphan", node: "n1" });
  const fault = { kind: "hang-after" } as const;
  node.proxy.rules.add({ verbs: ["post"], path: /ipallocations/, times: 1, fault });
  const adding = node.runtime.attach(pod);
  await until("the object is there", async () => (await objectsOf(world, pod)).length === 1);
  await node.agent.kill("SIGKILL");
  node.proxy.releaseWatches();
  await node.agent.start();
  const start = performance.now();
  expect((await adding).addresses).toHaveLength(1);
  report("killed after the create", { attachedMs: performance.now() - start, cleanMs: await world.untilClean() });
  await expectOwned(world, pod);
});

// Some dozens of starts of an agent, one after the other.
const WALK_MS = 400_000;

it("an agent is killed at every seventh effect of ADD and DEL, by number: nothing is lost, nothing is left", {
  timeout: WALK_MS,
}, async () => {
  expect(await killAtEffects(world, "n1", 7)).toBeGreaterThan(2);
});

it("agents are killed and come back in a storm", async () => {
  const disturb = async (): Promise<void> => {
    for (let round = 0; round < 3; round++)
      for (const node of world.nodes()) {
        await node.agent.kill("SIGKILL");
        await pause(200);
        await node.agent.start();
      }
  };
  await storm(world, { name: "killed", pods: 10, durationMs: 4_000, disturb, isFresh: true });
});

it("agents are killed and answers are lost while seven pods want four addresses: some order of all ADDs and DELs is legal", async () => {
  const disturb = async (): Promise<void> => {
    for (const { proxy, agent } of world.nodes()) {
      const fault = { kind: "reset-after" } as const;
      const order = proxy.rules.add({ verbs: ["post", "put", "delete"], path: /ipallocations/, times: 6, fault });
      await pause(500);
      await agent.kill("SIGKILL");
      await agent.start();
      order.remove();
    }
  };
  const { answered, exhausted } = await fightForFew(world, { seed: SEED, durationMs: 2_000, disturb });
  report("few addresses", { answered, exhausted });
  expect(answered).toBeGreaterThan(4);
  expect(exhausted).toBeGreaterThan(0);
});

it("the journal is wiped: the addresses of live pods are found again, and a late DEL frees none (late-del)", async () => {
  const pods = await startPods(world, "wiped", 6);
  const node = world.node("n1");
  const own = pods.filter((pod) => pod.node === "n1");
  await node.agent.kill("SIGKILL");
  await rm(node.agent.state, { recursive: true });
  await mkdir(node.agent.state);
  await node.agent.start();
  const start = performance.now();
  await until("the journal has them again", async () => (await node.agent.get("/v1/allocations")).length >= own.length);
  report("wiped", { adoptedMs: performance.now() - start });
  // Pods that come meanwhile get none of them.
  const more = await startPods(world, "more", 6);
  expect(await world.untilClean()).toBeLessThan(RECOVERY_MS);
  // An old sandbox of a live pod is cleaned up.
  for (const pod of own) await node.runtime.del(pod, node.runtime.newContainerId());
  await pause(3_000);
  for (const pod of [...own, ...more]) await expectOwned(world, pod);
  // A new sandbox of the same pod has the same address.
  const [pod] = own;
  if (pod === undefined) throw new Error("There are pods on n1");
  const before = world.ledger.find(pod, "eth0")?.addresses;
  await node.runtime.detach(pod);
  expect((await node.runtime.attach(pod)).addresses).toEqual(before);
});

it("an allocation is deleted by hand: the live pod's object is made again (recreate)", async () => {
  const pods = await startPods(world, "deleted", 3);
  for (const name of ["n1", "n2"]) await world.setNode(name, "True");
  const { caches } = await world.lead({ notices: startNotices });
  const isKnown = (address: string): boolean => caches.allocations.items.has(address);
  await until("the controller knows all", () =>
    pods.every((pod) => world.ledger.find(pod, "eth0")?.addresses.every(isKnown)),
  );
  const start = performance.now();
  for (const pod of pods) {
    const [address = ""] = world.ledger.find(pod, "eth0")?.addresses ?? [];
    await forceDelete(world.client, address);
  }
  await world.untilClean(RECOVERY_MS);
  report("deleted by hand", { cleanMs: performance.now() - start });
  for (const pod of pods) await expectOwned(world, pod);
  await world.depose();
});

it("an allocation is deleted by hand while its agent is dead, and another pod has the name: nothing is deleted, it is reported, and no ADD is answered with it (recreate)", async () => {
  const pods = [await startPod(world, "n1", "displaced"), await startPod(world, "n1", "restarted")] as const;
  const [address, other] = pods.map((pod) => world.ledger.find(pod, "eth0")?.addresses[0] ?? "") as [string, string];
  const { agent, runtime } = world.node("n1");
  await agent.kill("SIGKILL");
  for (const each of [address, other]) {
    const name = `usurper-${each.replaceAll(".", "-")}`;
    const usurper = await world.createPod({ name, node: "n2", annotations: { ippool: { ipv4: ["none"] } } });
    await forceDelete(world.client, each);
    await world.client.create(
      ALLOCATIONS,
      boundObject({ address: each, node: "n2", pod: name, podUID: usurper.uid, prefixLength: 23 }),
    );
  }
  await agent.start();
  const isTold = (each: string) => agent.stderr().includes(`usurper-${each.replaceAll(".", "-")}`);
  await until("the agent says who has the addresses", () => isTold(address) && isTold(other), RECOVERY_MS);
  for (const each of [address, other])
    expect((await objectOf(world, each))?.spec.holders[0].pod).toBe(`usurper-${each.replaceAll(".", "-")}`);
  // A new sandbox of the pod gets another one, while the old one is not cleaned up yet.
  const old = world.ledger.find(pods[1], "eth0");
  if (old !== undefined) world.ledger.drop(old);
  const [fresh] = (await runtime.attach(pods[1])).addresses;
  expect([other, undefined]).not.toContain(fresh);
  await runtime.del(pods[1], old?.containerId ?? "");
  expect((await objectsOf(world, pods[1])).map(({ metadata }) => metadata.name)).toEqual([fresh]);
  // The others' objects go: the live pod has its own again.
  for (const each of [address, other]) await insist(() => forceDelete(world.client, each));
  const isBack = async () => (await objectsOf(world, pods[0])).length === 1;
  report("name freed", { backMs: await until("the live pod's object is there", isBack, SEEN_AGAIN_MS) });
  await pardon(world, [address, other]);
});
