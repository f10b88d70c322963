/**
 * docs/recipes on a real API server: each page's objects are taken, in its order, and pods of it get the addresses
 * that it says, from agents in this process. The test is scheduler, kubelet and workload controllers.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { findBlocks, readDocumentsOf } from "../e2e/pages/script.ts";
import { applyObject, collectionOf } from "../lab/apply.ts";
import { runKubectlBerth } from "../lab/berthctl.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import * as lab from "../lab/cluster/objects.ts";
import { applyWorkloadKinds } from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { root } from "../unit/house/sources.ts";
import { borrowPlane } from "./borrow-plane.ts";

const FOLDER = join(root, "docs", "recipes");
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const NODES = { n1: { rack: "a" }, n2: { rack: "b" } };
const VALUES = "# values.yaml";
const MAX_LINES = 40;

/** Pods by name, `web@n2` on a node other than n1, and their addresses; those are on the page, too. */
const WANTED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "another-gateway.md": { new: "" },
  "another-subnet.md": { "db-0": "10.11.0.10" },
  "distributions.md": {},
  "dual-stack.md": { web: "10.16.0.10 fd00:16::10" },
  "external-traffic.md": {},
  "fixed-address.md": { scanner: "10.6.0.42" },
  "ipv6-only.md": { web: "2001:db8:6::1000" },
  "mtu-9000.md": { bulk: "10.90.0.2" },
  "namespace-on-a-vlan.md": { press: "10.120.0.50" },
  "racks.md": { web: "10.21.0.2", "web@n2": "10.22.0.2" },
  "reserve-an-address.md": { desk: "10.8.0.3" },
  "second-default-route.md": { proxy: "10.70.0.2" },
  "sr-iov.md": { quick: "10.30.0.2" },
  "statefulset.md": { "queue-0": "10.50.0.20", "queue-1": "10.50.0.10" },
  "virtual-machine.md": { db: "10.40.0.2" },
};

let world: World;
beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane });
  await applyWorkloadKinds(world.client);
  for (const [name, labels] of Object.entries(NODES)) {
    await world.client.create(lab.NODES, lab.nodeObject(name));
    await world.client.patch(`${lab.NODES}/${name}`, { metadata: { labels } });
    await world.openAgent(name);
  }
});
afterAll(() => world?.stop());

const textOf = (page: string): string => readFileSync(join(FOLDER, page), "utf8");

/** Returns the page's objects, those of its values for the chart first. Throws Helm's refusal. */
function objectsOf(page: string): KubeObject[] {
  const blocks = findBlocks(textOf(page), "yaml").map(({ lines }) => lines.join("\n"));
  const values = blocks.filter((text) => text.startsWith(VALUES)).flatMap(render);
  return [...values, ...readDocumentsOf(`docs/recipes/${page}`).filter(({ kind }) => kind !== undefined)];
}

const isSettings = ({ kind, metadata }: KubeObject) => kind === "ConfigMap" && metadata.name === "vendor-conf";

const RENDERED = ["IPPool", "NetworkAttachmentDefinition"];

function render(values: string): KubeObject[] {
  using chart = copyChart();
  const path = join(chart.directory, "..", "values.yaml");
  writeFileSync(path, values);
  const text = [...renderChart(chart, PLAIN_RELEASE, "--values", path).values()].join("\n---\n");
  const all: KubeObject[] = parseAllDocuments(text).map((document) => document.toJS());
  return all.filter((each) => each !== null && (RENDERED.includes(each.kind) || isSettings(each)));
}

/** Settings are those of the page's values, or IPv4 alone. */
async function applySettings(page: string, objects: readonly KubeObject[]): Promise<void> {
  const own = objects.find(isSettings);
  const settings = parse(own?.data["conf.yml"] ?? (textOf(page).includes(VALUES) ? "{}" : "enableIPv6: false"));
  await world.settings({ ...settings, allocationCooldown: "1s" });
  const { enableIPv4 = true, enableIPv6 = true } = settings;
  const isKnown = () =>
    world
      .agents()
      .every(({ snapshot: { vendorConf: conf } }) => conf.enableIPv4 === enableIPv4 && conf.enableIPv6 === enableIPv6);
  await until("the agents know the settings", isKnown);
}

interface Started {
  readonly pod: lab.LabPod;
  /** The ADD of the pod's NIC. */
  readonly call: object;
}

/** The pod that a controller or a person makes of the object, on the node. */
async function start(object: KubeObject, name: string, node: string, all: readonly KubeObject[]): Promise<Started> {
  const { kind, metadata, spec } = object;
  const { namespace } = metadata;
  const template: KubeObject = kind === "Pod" ? object : spec.template;
  const [{ multus = undefined } = {}] = template.spec.networks ?? [];
  const annotations = { ...template.metadata?.annotations, ...(multus && { [NETWORKS]: multus.networkName }) };
  const owner = { apiVersion: object.apiVersion, kind, name: metadata.name, uid: metadata.uid };
  const owned = kind === "StatefulSet" ? { owner } : {};
  const pod = await world.createPod({
    name,
    namespace,
    node,
    annotations,
    labels: template.metadata?.labels,
    ...owned,
  });
  return { pod, call: callOf(annotations[NETWORKS]?.replace(/^.*\//, ""), all) };
}

/** As Multus calls the plugin of the page's definition; without one the pod's first NIC is meant. */
function callOf(network: string | undefined, all: readonly KubeObject[]): object {
  if (network === undefined) return {};
  const isMeant = ({ kind, metadata }: KubeObject) =>
    kind === "NetworkAttachmentDefinition" && metadata.name === network;
  const { name, plugins } = JSON.parse(all.find(isMeant)?.spec.config);
  const { master: _, ...conf } = plugins.find((plugin: KubeObject) => plugin.ipam !== undefined);
  return { ifName: "net1", network: name, conf };
}

const addressesOf = async ({ pod, call }: Started): Promise<string> =>
  (await world.agent(pod.node).add(pod, { containerId: crypto.randomUUID(), ...call })).addresses;

describe("docs/recipes", () => {
  it("each has a row here, and at most 40 lines", () => {
    expect(readdirSync(FOLDER).sort()).toEqual(Object.keys(WANTED));
    for (const page of Object.keys(WANTED))
      expect(textOf(page).trimEnd().split("\n").length, page).toBeLessThanOrEqual(MAX_LINES);
  });

  it.each(Object.entries(WANTED))("%s", async (page, wanted) => {
    const objects = objectsOf(page);
    await applySettings(page, objects);
    const applied: KubeObject[] = [];
    try {
      for (const object of objects.filter((each) => each.kind !== "Pod" && !isSettings(each)))
        applied.push(await applyObject(world.client, object));
      await knowPools(applied);
      const made = [...applied, ...objects.filter(({ kind }) => kind === "Pod")];
      for (const [place, addresses] of Object.entries(wanted)) {
        const [name = "", node = "n1"] = place.split("@");
        const owner = made.findLast(({ metadata }) => name.startsWith(metadata.name)) as KubeObject;
        const started = await start(owner, name, node, objects);
        const got = await addressesOf(started);
        if (addresses !== "") expect(got, place).toBe(addresses);
        for (const address of addresses.split(" ")) expect(textOf(page)).toContain(address);
        if (owner.kind === "StatefulSet") await expectToKeep(owner, started, got, objects);
        else if (node !== "n1" || wanted[`${name}@n2`] === undefined) continue;
        else await world.endPod(started.pod);
      }
      for (const { lines } of findBlocks(textOf(page), "")) await expectOutput(lines);
      if (page === "namespace-on-a-vlan.md") await expectRefusal("plant", "Name the network vlan120");
    } finally {
      await world.clear();
      for (const object of applied.toReversed())
        await world.client.delete(`${await collectionOf(world.client, object)}/${object.metadata.name}`);
    }
  });
});

/** A watch may be behind. */
async function knowPools(applied: readonly KubeObject[]): Promise<void> {
  const isKnownTo = ({ snapshot }: AgentNode, { kind, metadata: { name } }: KubeObject): boolean =>
    kind === "IPPool" ? snapshot.pools.has(name) : snapshot.reserved.some((each) => each.name === name);
  const all = applied.filter(({ kind }) => kind === "IPPool" || kind === "ReservedIP");
  await until("the agents know all", () =>
    world.agents().every((agent) => all.every((each) => isKnownTo(agent, each))),
  );
}

/** A command of `kubectl berth` behind its prompt, and its output. */
async function expectOutput([command = "", ...output]: readonly string[]): Promise<void> {
  const words = command.replace("$ kubectl berth ", "").split(" ");
  const { out } = await runKubectlBerth("--kubeconfig", world.plane.kubeconfig, ...words);
  expect(out).toBe(`${output.join("\n")}\n`);
}

/** The pod comes back on another node. */
async function expectToKeep(
  owner: KubeObject,
  { pod }: Started,
  address: string,
  all: readonly KubeObject[],
): Promise<void> {
  await world.endPod(pod);
  const again = await start(owner, pod.name, "n2", all);
  expect(await addressesOf(again), `${pod.name} again`).toBe(address);
}

/** Of a pod that names no network. A policy is in force some time after it was made. */
async function expectRefusal(namespace: string, message: string): Promise<void> {
  const pod = lab.podObject({ name: "plain", namespace, node: "n1" });
  const path = `${lab.NAMESPACES}/${namespace}/pods?dryRun=All`;
  const refusal = () => world.client.create(path, pod).then(() => "", String);
  await expect.poll(refusal, { timeout: 30_000 }).toContain(message);
}
