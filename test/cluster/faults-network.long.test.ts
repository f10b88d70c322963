/**
 * Addresses under faults of the network: calls are late, broken before or after they were carried out, refused or
 * never answered; watches break, fall behind or expire.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { Fault, FaultRule } from "../lab/cluster/api-faults.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { type LabNode, startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { attach, drainAll, endAll, expectOwned, objectsOf, pause, startPod } from "./fault-questions.ts";
import { storm } from "./fault-storm.ts";

const ALL = ["get", "list", "post", "put", "patch", "delete"] as const;

let world: World;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1", "n2"],
    isObserved: true,
    pools: [{ name: "blue", subnet: "10.6.0.0/23" }],
    seed: 20,
  });
  await followWorld(world);
});

afterEach(async () => {
  for (const { proxy } of world.nodes()) {
    proxy.rules.clear();
    proxy.breakHanging();
    proxy.releaseWatches();
  }
  await endAll(world);
});

afterAll(async () => {
  await drainAll(world).finally(() => world?.stop());
});

/**
 * A fifth of the calls, and the first creates of each node for certain: how many calls there are in the time depends
 * on the machine.
 */
const often = (fault: Fault): FaultRule[] => [
  { verbs: ["post"], path: /ipallocations/, times: 2, fault },
  { verbs: ALL, probability: 0.2, fault },
];

const refusal = (status: number, reason: string): Fault => ({ kind: "answer", status, reason });

const rows: [string, FaultRule[]][] = [
  ["late", [{ verbs: ALL, fault: { kind: "delay", minMs: 50, maxMs: 800 } }]],
  ["reset before they arrive", often({ kind: "reset-before" })],
  ["reset after they were carried out", often({ kind: "reset-after" })],
  ["refused with 500 and 503", [...often(refusal(500, "InternalError")), ...often(refusal(503, "ServiceUnavailable"))]],
  [
    "not answered, carried out or not",
    [
      { verbs: ["post", "put", "delete"], times: 2, fault: { kind: "hang-after" } },
      { verbs: ["post", "get"], times: 2, fault: { kind: "hang-before" } },
    ],
  ],
];

it.each(rows)("calls are %s in a storm", async (name, rules) => {
  const disturb = async (): Promise<void> => {
    const orders = world.nodes().flatMap(({ proxy }) => rules.map((rule) => proxy.rules.add(rule)));
    await pause(2_000);
    await until("calls were struck", () => orders.reduce((hits, order) => hits + order.hits(), 0) > 2);
    for (const order of orders) order.remove();
  };
  await storm(world, { name: name.replaceAll(/[ ,]+/g, "-"), pods: 6, durationMs: 1_500, disturb, isFresh: true });
});

it("429 with Retry-After is waited for: no call comes sooner", async () => {
  const { proxy, runtime } = world.node("n1");
  proxy.holdWatches();
  const pod = await world.createPod({ name: "patient", node: "n1" });
  const fault = { kind: "answer", status: 429, reason: "TooManyRequests", retryAfterS: 2 } as const;
  const order = proxy.rules.add({ verbs: ["post"], path: /ipallocations/, times: 1, fault });
  proxy.resetTally();
  const { tookMs, attempts, addresses } = await runtime.attach(pod);
  expect([addresses.length, attempts, order.hits()]).toEqual([1, 1, 1]);
  expect(tookMs).toBeGreaterThan(1_900);
  expect(proxy.count({ verb: "post", resource: "ipallocations" })).toBe(2);
  proxy.releaseWatches();
  await expectOwned(world, pod);
});

it("a create that was carried out and never answered is found to be ours (undo)", async () => {
  const { proxy, runtime } = world.node("n1");
  proxy.holdWatches();
  const pod = await world.createPod({ name: "ambiguous", node: "n1" });
  const order = proxy.rules.add({ verbs: ["post"], path: /ipallocations/, times: 1, fault: { kind: "reset-after" } });
  const { attempts, addresses } = await runtime.attach(pod);
  expect([attempts, order.hits()]).toEqual([1, 1]);
  expect((await objectsOf(world, pod)).map(({ spec }) => spec.address)).toEqual(addresses);
});

it("watches break again and again in a storm", async () => {
  const disturb = async (): Promise<void> => {
    for (let cut = 0; cut < 5; cut++) {
      for (const { proxy } of world.nodes()) proxy.cutWatches();
      await pause(300);
    }
  };
  await storm(world, { name: "cut", pods: 6, durationMs: 1_500, disturb, isFresh: true });
});

it("watches end with an event 410 in a storm, and begin with a list", async () => {
  const listsOf = ({ proxy }: LabNode): number => proxy.count({ verb: "list", resource: "pods" });
  const before = world.nodes().map(listsOf);
  const haveListed = () => world.nodes().every((node, index) => listsOf(node) > (before[index] ?? 0));
  const fault = { kind: "watch-error", status: 410, reason: "Expired" } as const;
  const disturb = async (): Promise<void> => {
    for (const node of world.nodes()) {
      // One for certain, whoever else has watches.
      node.proxy.rules.add({ verbs: ["watch"], path: /\/pods/, times: 1, fault });
      node.proxy.rules.add({ verbs: ["watch"], times: 20, fault });
      node.proxy.cutWatches();
    }
    await pause(2_000);
    await until("pods are listed again", haveListed);
    for (const node of world.nodes()) node.proxy.rules.clear();
  };
  await storm(world, { name: "expired", pods: 6, durationMs: 1_500, disturb, isFresh: true });
});

it("calls pass and watches fall behind in a storm: what the cache shows is never believed alone", async () => {
  const disturb = async (): Promise<void> => {
    for (const { proxy } of world.nodes()) proxy.holdWatches();
    await pause(4_000);
    for (const { proxy } of world.nodes()) proxy.releaseWatches();
  };
  await storm(world, { name: "behind", pods: 8, durationMs: 3_000, disturb, isFresh: true });
});

it("a pod of the same name that is new has an address of its own while the watch shows the old one", async () => {
  const { proxy, runtime } = world.node("n1");
  const old = await startPod(world, "n1", "same");
  proxy.holdWatches();
  await runtime.detach(old);
  await world.deletePod(old);
  const fresh = await world.createPod({ name: "same", node: "n1" });
  await attach(world, world.node("n1"), fresh);
  await expectOwned(world, fresh);
  // The sweep reads a cache that says that the old one lives, and the new one does not.
  await pause(4_000);
  await expectOwned(world, fresh);
  proxy.releaseWatches();
  await until("nothing is wrong", async () => (await world.audit()).length === 0);
  expect(await objectsOf(world, old)).toEqual([]);
});
