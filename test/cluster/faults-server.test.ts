/**
 * Addresses under faults of the server: the API server or etcd ends, comes back, forgets its history, or comes back
 * as it was some time ago.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startEpoch } from "../../host/controller/epoch/epoch-controller.ts";
import { type FollowedWorld, followWorld } from "../lab/cluster/followed-world.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";
import { borrowPlane } from "./borrow-plane.ts";
import {
  attach,
  drainAll,
  endAll,
  endPod,
  expectOwned,
  objectsOf,
  pardon,
  pause,
  RECOVERY_MS,
  report,
  reuseAddress,
  serverReady,
  startPod,
} from "./fault-questions.ts";
import { createPods, startPods, stopServerInStorm, storm } from "./fault-storm.ts";

/** The gone pod is noticed, its address cools, and a node that has lost an address checks every 10 s. */
const SEEN_AGAIN_MS = 25_000;

/** An old copy of etcd lacks records of live pods until the API server is back and the agents have seen it. */
const RESTORED_MS = 30_000;

let world: World;
let followed: FollowedWorld;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1", "n2"],
    isObserved: true,
    graceMs: RESTORED_MS,
    pools: [{ name: "blue", subnet: "10.6.0.0/23" }],
  });
  followed = await followWorld(world);
  for (const { name } of world.nodes()) await world.setNode(name, "True");
  // An etcd that comes back from a copy begins an epoch, which the controller settles.
  await world.lead({ epoch: startEpoch });
});

afterEach(() => endAll(world));

afterAll(async () => {
  await drainAll(world).finally(() => world?.stop());
});

itLong("the API server is stopped in a storm of ADDs and DELs", async () => {
  await stopServerInStorm(world, { pods: 12, stoppedMs: 8_000 });
});

it("an agent comes back while the API server is away: a DEL is answered, an ADD waits, and both are made good", async () => {
  const node = world.node("n1");
  const [leaving, staying] = [await startPod(world, "n1", "leaving"), await startPod(world, "n1", "staying")];
  const coming = await world.createPod({ name: "coming", node: "n1" });
  await world.plane.server.stop();
  await node.agent.kill("SIGKILL");
  await node.agent.start();
  const start = performance.now();
  await node.runtime.detach(leaving);
  const deletedMs = performance.now() - start;
  // It waits for no API server, which comes back only after it.
  expect(deletedMs).toBeLessThan(5_000);
  const attaching = attach(world, node, coming);
  await pause(1_000);
  await world.plane.server.start();
  const upMs = performance.now();
  const { atMs } = await attaching;
  report("agent without a server", { deletedMs, attachedMs: atMs - upMs });
  expect(atMs - upMs).toBeLessThan(RECOVERY_MS);
  await world.deletePod(leaving);
  await world.untilClean();
  for (const pod of [staying, coming]) await expectOwned(world, pod);
});

it("while the API server is away, what is recorded is given at once, and a new address is refused for want of it", async () => {
  const { runtime } = world.node("n1");
  await world.pool("one", { subnet: "10.8.0.0/24", ips: ["10.8.0.7"] });
  const annotations = { ippool: { ipv4: ["one"] } };
  const holder = await world.createPod({ name: "holder", node: "n1", annotations });
  await attach(world, world.node("n1"), holder);
  const [ahead, short] = [
    await world.createPod({ name: "ahead", node: "n1" }),
    await world.createPod({ name: "short", node: "n1", annotations }),
  ];
  await until("one is claimed ahead", async () => (await objectsOf(world, ahead)).length === 1);
  await world.plane.server.stop();
  const startMs = performance.now();
  const { addresses, attempts } = await runtime.attach(ahead);
  const givenMs = performance.now() - startMs;
  const { exitCode, text } = await runtime.add(short, runtime.newContainerId());
  await world.plane.server.start();
  report("without a server", { givenMs });
  expect([addresses.length, attempts]).toEqual([1, 1]);
  expect(givenMs).toBeLessThan(5_000);
  expect(exitCode).not.toBe(0);
  expect(text).toMatch(/The API server has not answered since 20\S+Z: .*ECONN\w+. Until it does, pods get only what/);
  expect(text).not.toContain("went back in time");
  await serverReady(world);
});

itLong("etcd is restarted in a storm", async () => {
  const disturb = async (): Promise<void> => {
    await world.plane.etcd.stop();
    await pause(2_000);
    await world.plane.etcd.start();
    await serverReady(world);
  };
  await storm(world, { name: "etcd", pods: 8, durationMs: 3_000, disturb });
});

itLong("history is compacted in a storm: watches are answered with 410 and start over", async () => {
  const lists = () => world.nodes().map(({ proxy }) => proxy.count({ verb: "list", resource: "ipallocations" }));
  const before = lists();
  await storm(world, { name: "compacted", pods: 8, durationMs: 3_000, disturb: () => world.plane.compact() });
  await until("both have listed again", () => lists().every((count, index) => count > (before[index] ?? 0)));
  // The new watch shows what comes.
  const pod = await world.createPod({ name: "later", node: "n1" });
  await until("the pod's address is claimed ahead", async () => (await objectsOf(world, pod)).length === 1);
  await attach(world, world.node("n1"), pod);
});

itLong(
  "etcd is restored from an older copy: what was claimed since is claimed again, what was released since is released again",
  async () => {
    const leaving = await startPods(world, "leaving", 6);
    for (const { proxy } of world.nodes()) proxy.holdWatches();
    const coming = await createPods(world, "coming", 6);
    const copy = await world.plane.snapshot();
    for (const { proxy } of world.nodes()) proxy.releaseWatches();
    for (const pod of coming) await attach(world, world.node(pod.node), pod);
    for (const pod of leaving) await endPod(world, pod);
    await world.untilClean();
    await followed.restore(copy);
    const start = performance.now();
    // The pods that had gone are back as objects, and are deleted again: no runtime has them.
    for (const pod of leaving) await world.deletePod(pod);
    await world.untilClean(RECOVERY_MS);
    report("restored", { cleanMs: performance.now() - start });
    for (const pod of coming) await expectOwned(world, pod);
    // Resource versions are given out again; that must not stop what follows.
    await storm(world, { name: "afterwards", pods: 6, durationMs: 1_000 });
  },
);

it("an address that went to another pod after the copy was taken: the live one has it in the end (registry-epoch)", async () => {
  const { before, after, copy } = await reuseAddress(world);
  await world.untilClean();
  await followed.restore(copy);
  // It is not in any runtime, and is not created again.
  await world.deletePod(before);
  const isBack = async () => (await objectsOf(world, after)).length === 1;
  report("reused", { backMs: await until("the live pod's object is there", isBack, SEEN_AGAIN_MS) });
  await world.untilClean();
  await pardon(world, ["10.7.0.7"]);
});
