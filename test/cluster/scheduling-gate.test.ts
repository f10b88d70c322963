/**
 * The scheduling gate of pods (docs/scheduling-gate.md), set by the chart's policy and removed by the built controller.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { applyObject } from "../lab/apply.ts";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { type LabPod, NAMESPACES, namespaceObject, podObject, podPath } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { outcomeOf } from "./rights-objects.ts";

const PODS = `${NAMESPACES}/shop/pods`;
const GATE = { name: "ipam.vendor.io/address" };
const CONDITION = "ipam.vendor.io/AddressAvailable";
const QUICK = ["--lease-duration", "3", "--lease-renew-deadline", "2", "--lease-retry", "0.4"];

let world: World;
let client: KubeClient;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane });
  ({ client } = world);
  await world.setNode("n1", "True");
  await world.pool("two", { subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.2"] });
  await world.pool("none", { subnet: "10.7.0.0/24" });
  controller = await start("one");
});
afterAll(async () => {
  await controller?.kill();
  await world?.stop();
});

async function start(name: string): Promise<ControllerProcess> {
  return startControllerProcess({ kubeconfig: await world.controllerKubeconfig(), name, args: QUICK });
}

async function makePod(name: string, pool = "two", gates = [GATE]): Promise<LabPod> {
  const pod = podObject({ name, node: "n1", annotations: { ippool: { ipv4: [pool] } } });
  const spec = { ...pod.spec, nodeName: undefined, schedulingGates: gates };
  const { metadata } = await client.create(PODS, { ...pod, spec });
  return { namespace: "shop", name, uid: metadata.uid, node: "n1" };
}

/** `web-0 open`, `web-1 waits NoRoom`, of all pods. */
async function states(): Promise<string[]> {
  const { items } = await client.get(PODS);
  return items
    .map(({ metadata, spec, status }: KubeObject) => {
      const { reason = "", status: is } = status.conditions?.find(({ type }: KubeObject) => type === CONDITION) ?? {};
      const isGated = spec.schedulingGates?.some(({ name }: KubeObject) => name === GATE.name) ?? false;
      return [metadata.name, isGated ? "waits" : "open", is === "False" ? reason : ""].join(" ").trim();
    })
    .sort();
}

const expectStates = (...wanted: readonly string[]): Promise<void> =>
  expect.poll(states, { timeout: 30_000 }).toEqual(wanted);

describe("pods with the gate", () => {
  it("are let through while the pool has room for those before, too, and told why they wait", async () => {
    for (const name of ["a", "b"]) await makePod(name);
    await expectStates("a open", "b open");
    for (const name of ["c", "d"]) await makePod(name);
    await expectStates("a open", "b open", "c waits NoRoom", "d waits NoRoom");
    const { status } = await client.get(`${PODS}/c`);
    expect(status.conditions).toMatchObject([
      { type: "PodScheduled", reason: "SchedulingGated" },
      {
        type: CONDITION,
        message: expect.stringMatching(/^No address is free for IPv4 .*pool "two" has no free address/),
      },
    ]);
  });

  it("keep other gates", async () => {
    await makePod("other", "none", [{ name: "example.com/other" }, GATE]);
    await expect
      .poll(async () => (await client.get(`${PODS}/other`)).spec.schedulingGates, { timeout: 30_000 })
      .toEqual([{ name: "example.com/other" }]);
  });
});

describe.each(["berth-controller", "berth-agent"])("the account %s", (account) => {
  it("removes this gate and changes nothing else of a pod", async () => {
    await controller.kill();
    const pod = await makePod(`held-${account}`, "none", [{ name: "example.com/other" }, GATE]);
    const own = await world.openClient("n1", { account });
    const path = podPath(pod);
    const patch = (change: object) => outcomeOf(own.patch(path, change));
    const other = [{ name: "example.com/other" }];
    expect(await patch({ spec: { schedulingGates: [GATE] } })).toMatch(/^403 .*removes the scheduling gate/);
    expect(await patch({ spec: { schedulingGates: null } })).toMatch(/^403 .*removes the scheduling gate/);
    expect(await patch({ spec: { schedulingGates: other, nodeSelector: { a: "b" } } })).toMatch(/^403 .*nothing else/);
    expect(await patch({ spec: { schedulingGates: other }, metadata: { labels: { a: "b" } } })).toMatch(
      /^403 .*metadata/,
    );
    expect(await patch({ spec: { containers: [{ name: "main", image: "x:1" }] } })).toMatch(/^403 .*nothing else/);
    expect(await patch({ spec: { schedulingGates: other } })).toBe("done");
    const before = (await client.get(path)).status.conditions;
    const status = (conditions: readonly object[], more: object = {}) =>
      outcomeOf(own.patch(`${path}/status`, { status: { conditions, ...more } }));
    const mine = { type: CONDITION, status: "False", reason: "X", message: "x" };
    if (account === "berth-agent") expect(await status([...before, mine])).toMatch(/^403 .*cannot patch/);
    else {
      expect(await status([mine])).toMatch(/^403 .*writes the condition/);
      expect(await status([...before, { ...mine, type: "Ready" }])).toMatch(/^403 .*writes the condition/);
      expect(await status([...before, mine], { phase: "Failed" })).toMatch(/^403 .*writes the condition/);
      expect(await status([...before, mine])).toBe("done");
    }
    expect(await outcomeOf(own.delete(path))).toMatch(/^403 /);
  });
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
  const other = "example.com/other";
  expect(await gatesOf("gated", "two", { schedulingGates: [{ name: other }] })).toEqual([other, GATE.name]);
  expect(await gatesOf("gated", "own", { schedulingGates: [GATE] })).toHaveLength(1);
  expect(await gatesOf("gated", "placed", { nodeName: "n1" })).toEqual([]);
  expect(await gatesOf("gated", "host", { hostNetwork: true })).toEqual([]);
  expect(await gatesOf("shop", "web")).toEqual([]);
});
