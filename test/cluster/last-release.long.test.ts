/**
 * Agents and controllers of the last release and of this tree in one cluster, with the kinds and rights of this tree,
 * as an upgrade and a rollback have them.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { lastReleaseDir, root } from "../../scripts/setup/paths.mjs";
import { lastRelease, readVersion } from "../../scripts/setup/version.mjs";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

const LAST_DIST = join(lastReleaseDir(), "dist");
const DIST = join(root, "dist");
const NODES = ["n1", "n2"] as const;

let world: World;
const controllers: ControllerProcess[] = [];

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    isObserved: true,
    nodes: NODES,
    pools: [{ name: "blue", subnet: "10.6.0.0/28" }],
    agent: { dist: LAST_DIST },
  });
  await followWorld(world);
});
afterAll(async () => {
  for (const controller of controllers) await controller.kill();
  await world?.stop();
});

async function startController(name: string, dist: string): Promise<ControllerProcess> {
  const kubeconfig = await world.controllerKubeconfig();
  const controller = await startControllerProcess({ kubeconfig, name, dist });
  controllers.push(controller);
  return controller;
}

async function replaceAgent(name: string, dist: string): Promise<void> {
  const { agent } = world.node(name);
  await agent.stop();
  await agent.start({}, dist);
  await expect.poll(async () => (await agent.request("/v1/health")).status, { timeout: 60_000 }).toBe(200);
}

const versions = () => Promise.all(NODES.map(async (name) => (await world.node(name).agent.get("/v1/health")).version));

const addresses: string[] = [];
const pods: LabPod[] = [];

/** A pod on each node: no address is given twice, and each is an object. */
async function addPods(stage: string): Promise<void> {
  for (const node of NODES) {
    const pod = await world.createPod({ name: `${stage}-${node}`, node });
    const { addresses: given, refusal } = await world.node(node).runtime.attach(pod);
    expect([refusal, given.length]).toEqual(["", 1]);
    expect(addresses).not.toContain(given[0]);
    addresses.push(...given);
    pods.push(pod);
  }
  const bound = async () => (await world.allocations()).map(({ metadata }) => metadata.name).sort();
  await expect.poll(bound, { timeout: 30_000 }).toEqual(addresses.toSorted());
}

it("serve side by side, through an upgrade and a rollback: each address once, and all given back", async () => {
  const [last, current] = [lastRelease.version, readVersion()];
  const old = await startController("old", LAST_DIST);
  await expect.poll(async () => (await old.status()).isLeading, { timeout: 30_000 }).toBe(true);
  await expect.poll(versions, { timeout: 30_000 }).toEqual([last, last]);
  await addPods("before");

  await replaceAgent("n1", DIST);
  expect(await versions()).toEqual([current, last]);
  await addPods("mixed");

  const young = await startController("young", DIST);
  expect(await old.stop()).toBe(0);
  await expect.poll(async () => (await young.status()).isLeading, { timeout: 30_000 }).toBe(true);
  expect((await young.status()).version).toBe(current);
  await addPods("led");

  await replaceAgent("n2", DIST);
  expect(await versions()).toEqual([current, current]);
  await addPods("after");

  await replaceAgent("n1", LAST_DIST);
  expect(await versions()).toEqual([last, current]);
  await addPods("back");

  for (const pod of pods) {
    await world.node(pod.node).runtime.detach(pod);
    await world.deletePod(pod);
  }
  await expect.poll(async () => (await world.allocations()).length, { timeout: 30_000 }).toBe(0);
});
