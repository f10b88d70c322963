/**
 * The scheduling gate of pods (docs/scheduling-gate.md), set by the chart's policy and removed by the built controller.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../../../scripts/chart/helm.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { outcomeOf } from "../../../../test/cluster/rights-objects.ts";
import { applyObject } from "../../../../test/lab/apply.ts";
import {
  deletePod,
  finishPod,
  type LabPod,
  NAMESPACES,
  namespaceObject,
  podObject,
  podPath,
} from "../../../../test/lab/cluster/objects.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";

const PODS = `${NAMESPACES}/shop/pods`;
const GATE = { name: "ipam.vendor.io/address" };
const OTHER = { name: "example.com/other" };
const CONDITION = "ipam.vendor.io/AddressAvailable";

let world: World;
let client: KubeClient;

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane });
  ({ client } = world);
  await world.setNode("n1", "True");
  await world.startController("one");
});
afterAll(() => world?.stop());

let pools = 10;
/** `ends`: of its addresses. */
const makePool = (name: string, ends = [1], more: object = {}): Promise<unknown> => {
  const net = `10.${++pools}.0`;
  return world.pool(name, { subnet: `${net}.0/24`, ips: ends.map((end) => `${net}.${end}`), ...more });
};

async function makePod(name: string, pool: string, gates = [GATE], more: object = {}): Promise<LabPod> {
  const pod = podObject({ name, node: "n1", annotations: { ippool: { ipv4: [pool] } }, ...more });
  const spec = { ...pod.spec, nodeName: undefined, schedulingGates: gates };
  const { metadata } = await client.create(PODS, { ...pod, spec });
  return { namespace: "shop", name, uid: metadata.uid, node: "n1" };
}

/** `open`, `waits NoRoom`. */
async function stateOf(name: string): Promise<string> {
  const { spec, status } = await client.get(`${PODS}/${name}`);
  const { reason = "", status: is } = status.conditions?.find(({ type }: KubeObject) => type === CONDITION) ?? {};
  const isGated = spec.schedulingGates?.some(({ name }: KubeObject) => name === GATE.name) ?? false;
  return [isGated ? "waits" : "open", is === "False" ? reason : ""].join(" ").trim();
}

const expectState = (name: string, wanted: string): Promise<void> =>
  expect.poll(() => stateOf(name), { timeout: 30_000 }).toBe(wanted);

describe("pods with the gate", () => {
  it("are let through while the pool has room for those before, too, and told why they wait", async () => {
    await makePool("two", [1, 2]);
    for (const name of ["a", "b", "c"]) await makePod(name, "two");
    for (const name of ["a", "b"]) await expectState(name, "open");
    await expectState("c", "waits NoRoom");
    const { status } = await client.get(`${PODS}/c`);
    const message = expect.stringMatching(/^No address is free for IPv4 .*pool "two" has no free address/);
    expect(status.conditions).toMatchObject([{ reason: "SchedulingGated" }, { type: CONDITION, message }]);
  });

  it("are let through to an address that waits for them, though others find none", async () => {
    await makePool("waiting", [1, 2]);
    const net = `10.${pools}.0`;
    await world.create("ReservedIP", "own", { ips: [`${net}.1`], owner: { namespace: "shop", name: "own" } });
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "s1" };
    const workload = { kind: owner.kind, namespace: "shop", name: owner.name, uid: owner.uid, member: "db-0" };
    const quarantine = { reason: "NodeLost" as const, mac: "", parent: "" };
    await world.allocate(`${net}.2`, { pool: "waiting", node: "n2", state: "Quarantined", workload, quarantine });
    await makePod("db-1", "waiting", [GATE], { owner });
    await expectState("db-1", "waits NoRoom");
    await makePod("own", "waiting");
    await makePod("db-0", "waiting", [GATE], { owner });
    for (const name of ["own", "db-0"]) await expectState(name, "open");
  });

  it("keep other gates, and count as soon as those are gone", async () => {
    await makePool("held", [1, 2]);
    const held = await makePod("held", "held", [OTHER, GATE]);
    await expectState("held", "open");
    expect((await client.get(podPath(held))).spec.schedulingGates).toEqual([OTHER]);
    for (const name of ["held-1", "held-2"]) {
      await makePod(name, "held");
      await expectState(name, "open");
    }
    await client.delete(`${PODS}/held-1`);
    await client.patch(podPath(held), { spec: { schedulingGates: null } });
    await makePod("held-3", "held");
    await expectState("held-3", "waits NoRoom");
  });
});

const conditions = [
  { type: CONDITION, status: "True" },
  { type: "PodScheduled", status: "False", reason: "Unschedulable" },
];
/** Until it has its address, it takes room there. */
const bind = async (pod: LabPod): Promise<void> => {
  const target = { kind: "Node", name: pod.node };
  await client.create(`${podPath(pod)}/binding`, { metadata: { name: pod.name }, target });
  const pool = pod.name.slice(0, -2);
  await makePod(`${pool}-3`, pool);
  await expectState(`${pool}-3`, "waits NoRoom");
  expect(await stateOf(`${pool}-2`)).toBe("waits NoRoom");
};
it.each<[string, (pod: LabPod) => Promise<unknown>]>([
  ["fits no node", (pod) => client.patch(`${podPath(pod)}/status`, { status: { conditions } })],
  ["is gone", (pod) => deletePod(client, pod)],
  ["is gone from its node", (pod) => bind(pod).then(() => deletePod(client, pod))],
  ["has failed on its node", (pod) => bind(pod).then(() => finishPod(client, pod, "Failed"))],
])("the next pod is let through when that before: %s", async (title, end) => {
  const pool = title.replaceAll(" ", "-");
  await makePool(pool);
  const before = await makePod(`${pool}-1`, pool);
  await expectState(`${pool}-1`, "open");
  await makePod(`${pool}-2`, pool);
  await expectState(`${pool}-2`, "waits NoRoom");
  await end(before);
  await expectState(`${pool}-2`, "open");
});

it("the account of the controller removes this gate and changes nothing else of a pod, agents' not even that", async () => {
  await world.killControllers();
  const removed = { spec: { schedulingGates: [OTHER] } };
  const pod = await makePod("account", "none", [OTHER, GATE]);
  const own = await world.openClient("n1", { account: "berth-controller" });
  const path = podPath(pod);
  const patch = (change: object) => outcomeOf(own.patch(path, change));
  const agent = await world.openClient("n1", { account: "berth-agent" });
  expect(await outcomeOf(agent.patch(path, removed))).toMatch(/^403 .*cannot patch/);
  expect(await patch({ spec: { schedulingGates: [GATE] } })).toMatch(/^403 .*removes the scheduling gate/);
  expect(await patch({ spec: { schedulingGates: null } })).toMatch(/^403 .*removes the scheduling gate/);
  expect(await patch({ spec: { ...removed.spec, nodeSelector: { a: "b" } } })).toMatch(/^403 .*nothing else/);
  expect(await patch({ ...removed, metadata: { labels: { a: "b" } } })).toMatch(/^403 .*metadata/);
  expect(await patch({ spec: { containers: [{ name: "main", image: "x:1" }] } })).toMatch(/^403 .*nothing else/);
  expect(await patch(removed)).toBe("done");
  const before = (await client.get(path)).status.conditions;
  const status = (conditions: readonly object[], more: object = {}) =>
    outcomeOf(own.patch(`${path}/status`, { status: { conditions, ...more } }));
  const mine = { type: CONDITION, status: "False", reason: "X", message: "x" };
  expect(await status([mine])).toMatch(/^403 .*writes the condition/);
  expect(await status([...before, { ...mine, type: "Ready" }])).toMatch(/^403 .*writes the condition/);
  expect(await status([...before, mine], { phase: "Failed" })).toMatch(/^403 .*writes the condition/);
  expect(await status([...before, mine])).toBe("done");
  expect(await outcomeOf(own.delete(path))).toMatch(/^403 /);
});

async function gatesOf(namespace: string, name: string, spec: object = {}): Promise<string[]> {
  const pod = podObject({ name, namespace, node: "n1" });
  const wanted = { ...pod, spec: { ...pod.spec, nodeName: undefined, ...spec } };
  const made = await client.create(`${NAMESPACES}/${namespace}/pods`, wanted);
  return (made.spec.schedulingGates ?? []).map((gate: { readonly name: string }) => gate.name);
}

it("new pods of a namespace with the label get the gate beside others, and no pods that need none", async () => {
  using chart = copyChart();
  const files = renderChart(chart, PLAIN_RELEASE, "--set", "schedulingGate.enabled=true");
  for (const document of parseAllDocuments(files.get("scheduling-gate.yaml") ?? ""))
    await applyObject(client, document.toJS());
  const labels = { "ipam.vendor.io/scheduling-gate": "enabled" };
  await client.create(NAMESPACES, namespaceObject("gated", { labels }));
  let attempts = 0;
  // The policy counts a moment after it was made.
  await expect.poll(() => gatesOf("gated", `web-${attempts++}`), { timeout: 30_000 }).toEqual([GATE.name]);
  expect(await gatesOf("gated", "two", { schedulingGates: [OTHER] })).toEqual([OTHER.name, GATE.name]);
  expect(await gatesOf("gated", "own", { schedulingGates: [GATE] })).toHaveLength(1);
  expect(await gatesOf("gated", "placed", { nodeName: "n1" })).toEqual([]);
  expect(await gatesOf("gated", "host", { hostNetwork: true })).toEqual([]);
  expect(await gatesOf("shop", "web")).toEqual([]);
});
