/** Without a controller a built agent lets pods with the scheduling gate through (docs/scheduling-gate.md). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { NAMESPACES, podObject } from "../lab/cluster/objects.ts";
import { startPlane } from "../lab/cluster/plane.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";

const PODS = `${NAMESPACES}/shop/pods`;
/** The age of the Lease, and twice the longest time between two reads of it. */
const MOST_MS = 60_000 + 2 * 40_000;

let world: World;
beforeAll(async () => {
  world = await startWorld({ startPlane: () => startPlane(), nodes: ["n1"] });
});
afterAll(() => world?.stop());

it("no pod waits for a controller that does not come, and other gates stay", async () => {
  const { client } = world;
  const startMs = performance.now();
  const pod = podObject({ name: "web", node: "n1" });
  const schedulingGates = [{ name: "example.com/other" }, { name: "ipam.vendor.io/address" }];
  await client.create(PODS, { ...pod, spec: { ...pod.spec, nodeName: undefined, schedulingGates } });
  const gates = async (): Promise<string[]> =>
    (await client.get(`${PODS}/web`)).spec.schedulingGates.map(({ name }: { readonly name: string }) => name);
  await until("the gate is removed", async () => (await gates()).join() === "example.com/other", MOST_MS);
  const seconds = (performance.now() - startMs) / 1000;
  console.log(`scheduling-gate: removed by the agent after ${seconds.toFixed(0)} s without a controller`);
  expect(seconds).toBeGreaterThan(40);
});
