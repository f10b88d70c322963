/**
 * Addresses of a node that does not answer, or that is no longer in the cluster, while its pods live on (node-lost);
 * and addresses of nodes whose clocks are wrong.
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { NODES } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";
import {
  attach,
  drainAll,
  endAll,
  endPod,
  expectOwned,
  objectOf,
  pause,
  RECOVERY_MS,
  report,
  startPod,
} from "./fault-questions.ts";
import { storm } from "./fault-storm.ts";

const DAY_MS = 86_400_000;
/** Shortest time before reuse in the world; a take-over is never younger than this. */
const MIN_REUSE_MS = 2_000;

let world: World;

beforeAll(async () => {
  // The grace is longer than what a kubelet needs to end pods whose objects went while it was cut off.
  const settings = { allocationCooldown: "3s", garbageCollection: { interval: "2s", grace: "4s" } };
  const pools = [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.12"] }];
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1", "n2"], pools, settings, isObserved: true });
  await followWorld(world, { minReuseMs: MIN_REUSE_MS });
});

afterEach(() => endAll(world));

afterAll(async () => {
  await drainAll(world).finally(() => world?.stop());
});

const live = (pods: readonly { readonly uid: string }[]): string[] =>
  world.ledger.live().flatMap(({ pod, addresses }) => (pods.some(({ uid }) => uid === pod.uid) ? addresses : []));

it("a node is cut off and removed while its pods live on: no pod gets their addresses, and they are free when it has come back and ended them (node-lost)", async () => {
  const cut = world.node("n1");
  const lost = [];
  for (let index = 0; index < 4; index++) lost.push(await startPod(world, "n1", `lost-${index}`));
  const addresses = live(lost);
  cut.proxy.refuse();
  // As the cluster's own controllers do with a node that is gone.
  await world.client.delete(`${NODES}/n1`);
  for (const pod of lost) await world.deletePod(pod);
  // The others fill what is left, and one more finds nothing.
  const others = [];
  for (let index = 0; index < 8; index++) others.push(await startPod(world, "n2", `other-${index}`));
  const late = await world.createPod({ name: "late", node: "n2" });
  const refused = await world.node("n2").runtime.attach(late, { limitMs: 5_000 });
  expect(refused.addresses).toEqual([]);
  for (const address of addresses) expect((await objectOf(world, address))?.spec.node).toBe("n1");
  // On the cut node itself a DEL needs no API server.
  const [first, ...rest] = lost;
  if (first === undefined) throw new Error("There are pods on n1");
  await cut.runtime.detach(first);
  await cut.proxy.accept();
  await world.client.create(NODES, { metadata: { name: "n1", labels: { "kubernetes.io/hostname": "n1" } } });
  const start = performance.now();
  for (const pod of rest) await cut.runtime.detach(pod);
  await attach(world, world.node("n2"), late);
  report("node lost", { attachedMs: performance.now() - start });
  expect(performance.now() - start).toBeLessThan(RECOVERY_MS);
  await world.untilClean();
});

it("a node's object is deleted while its agent runs: its pods keep their addresses", async () => {
  const pods = [];
  for (let index = 0; index < 3; index++) pods.push(await startPod(world, "n1", `kept-${index}`));
  await world.client.delete(`${NODES}/n1`);
  await pause(6_000);
  for (const pod of pods) await expectOwned(world, pod);
  await world.untilClean();
  await world.client.create(NODES, { metadata: { name: "n1", labels: { "kubernetes.io/hostname": "n1" } } });
  const pod = await startPod(world, "n1", "next");
  await expectOwned(world, pod);
});

it("clocks are wrong by a day: nothing cools for a shorter time, nothing is collected that lives (cooling-visibility)", async () => {
  const load = `--import=${pathToFileURL(join(root, "test", "lab", "cluster", "shifted-clock.mjs"))}`;
  const clock = (ms: number) => ({ NODE_OPTIONS: load, BERTH_LAB_CLOCK_MS: String(ms) });
  const early = {
    env: clock(DAY_MS),
    wrapper: ["unshare", "--time", "--monotonic", "86400", "--boottime", "86400", "--"],
  };
  await world.addNode("fast", { agent: early });
  await world.addNode("slow", { agent: { env: clock(-DAY_MS) }, proxy: { isUnverified: true } });
  const before = world.ledger.reuses.length;
  // Twelve addresses for pods of four nodes, of which two run at a time: they go round.
  for (let round = 0; round < 3; round++) {
    const pods = await Promise.all(world.nodes().map(({ name }) => startPod(world, name, `round-${round}-${name}`)));
    await world.untilClean();
    await Promise.all(pods.map((pod) => endPod(world, pod)));
  }
  await storm(world, { name: "clocks", pods: 2, durationMs: 2_000 });
  const reuses = world.ledger.reuses.slice(before);
  const gaps = reuses.map(({ gapMs }) => gapMs);
  report("clocks", { reuses: reuses.length, shortestMs: Math.min(...gaps) });
  expect(reuses.some(({ from, to }) => from.node !== to.node)).toBe(true);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(MIN_REUSE_MS);
});
