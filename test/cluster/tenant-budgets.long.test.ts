/**
 * A tenant whose objects take more memory than there is for all of them, densely written, on a real API server: what is
 * not used is the tenant's, it is named wherever an operator looks, and all others are served. Each kind and ten times
 * as much: long/tenant-budgets.test.ts.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { berthctl } from "../e2e/symptoms/node.ts";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { writeControllerKubeconfig } from "../lab/cluster/in-process.ts";
import { applyDefinition, NAMESPACES, namespaceObject, SYSTEM } from "../lab/cluster/objects.ts";
import { type LabNode, startWorld, type World } from "../lab/cluster/world.ts";
import { inParallel } from "../lab/parallel.ts";
import { daemonRssMib } from "../lab/statistics.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PATIENCE = { timeout: 60_000, interval: 500 };
const EMPTY_OBJECTS = 980;
const DEFINITIONS = "NetworkAttachmentDefinitions";

let world: World;
let node: LabNode;
let controller: ControllerProcess;

async function define(namespace: string, count: number): Promise<void> {
  const config = { name: "x", type: "coordinator", x: Array(EMPTY_OBJECTS).fill({}) };
  await inParallel([...Array(count).keys()], 8, (at) => applyDefinition(world.client, namespace, `d${at}`, config));
}

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    namespaces: ["shop", "evil"],
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
  });
  await define(SYSTEM, 10);
  await define("shop", 10);
  await define("evil", 200);
  const labels = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, "x"]));
  await world.client.create(NAMESPACES, namespaceObject("evil-labels", { labels }));
  node = await world.addNode("n1", { agent: { args: ["--metrics-listen", "127.0.0.1:0"] } });
  controller = await startControllerProcess({ kubeconfig: await writeControllerKubeconfig(world.plane), name: "one" });
}, 180_000);

afterAll(async () => {
  await controller?.kill();
  await world?.stop();
});

async function eventsAt(kind: string, name: string): Promise<string> {
  const { items } = await world.client.get("/apis/events.k8s.io/v1/events");
  const own = items.filter(
    ({ regarding, reason }: { regarding: { kind: string; name: string }; reason: string }) =>
      reason === "ObjectsNotUsed" && regarding.kind === kind && regarding.name === name,
  );
  return own.map(({ note }: { note: string }) => note).join("\n");
}

it("`check`, an Event at the Node and a metric name what an agent does not use: objects of that tenant alone", async () => {
  const { agent } = node;
  const problems = async (): Promise<readonly string[]> =>
    JSON.parse((await agent.request("/v1/health")).body).problems;
  const named = async () => (await problems()).map((text) => text.replaceAll(/evil\/d\d+/g, "evil/dN")).sort();
  await expect
    .poll(named, PATIENCE)
    .toEqual([
      expect.stringMatching(
        `^Of namespace evil are not used: (${DEFINITIONS} evil/dN, ){4}.* others; what tenants write would take more than 14 MiB`,
      ),
      "Of namespace evil-labels are not used: Namespaces evil-labels; each is longer than 262144 characters",
    ]);
  expect(await berthctl(agent.socket, "check")).toContain("Of namespace evil are not used: ");
  await expect
    .poll(() => eventsAt("Node", "n1"), PATIENCE)
    .toContain("Objects of namespace evil are not used by the agent");
  const url = /"metrics":"(?<url>http:[^"]+)"/.exec(agent.stderr())?.groups?.url;
  const metrics = await (await fetch(`${url}/metrics`)).text();
  for (const collection of ["Namespaces", DEFINITIONS])
    expect(metrics).toMatch(new RegExp(`^berth_watch_unused_objects{collection="${collection}"} [1-9]`, "m"));
});

it("a pod of anybody is served, and so is one of that tenant", async () => {
  for (const namespace of ["shop", "evil", SYSTEM]) {
    const pod = await world.createPod({ name: "web-0", namespace, node: "n1" });
    const { addresses, refusal } = await node.runtime.attach(pod);
    expect([refusal, addresses.length]).toEqual(["", 1]);
    await node.runtime.detach(pod);
    await world.deletePod(pod);
  }
  expect(daemonRssMib(node.agent.pid)).toBeLessThan(200);
});

it("the controller's status and an Event at the Namespace name what it does not use", async () => {
  const problems = async () => JSON.stringify(await controller.status());
  await expect.poll(problems, PATIENCE).toContain("Of namespace evil-labels are not used: Namespaces evil-labels;");
  await expect.poll(() => eventsAt("Namespace", "evil-labels"), PATIENCE).toContain("are not used by the controller");
});
