/**
 * An agent while the API server is away. That it comes back as it was some time ago is in restores.test.ts; faults of
 * all kinds, one after another, in long/cluster-faults.test.ts.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startEpoch } from "../../host/controller/epoch/epoch-controller.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";
import {
  attach,
  drainAll,
  endAll,
  expectOwned,
  objectsOf,
  pause,
  RECOVERY_MS,
  report,
  serverReady,
  startPod,
} from "./fault-questions.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1", "n2"],
    isObserved: true,
    pools: [{ name: "blue", subnet: "10.6.0.0/23" }],
  });
  await followWorld(world);
  for (const { name } of world.nodes()) await world.setNode(name, "True");
  // An etcd that comes back from a copy begins an epoch, which the controller settles.
  await world.lead({ epoch: startEpoch });
});

afterEach(() => endAll(world));

afterAll(async () => {
  await drainAll(world).finally(() => world?.stop());
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

it("while the API server is away, recorded addresses are given at once, and a new one is refused for want of it", async () => {
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
