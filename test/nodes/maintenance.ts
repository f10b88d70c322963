/** An operator's work on a cluster with pods: maintenance of nodes, rolling agents, other ranges, a tenant's end. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { copyChart } from "../../scripts/chart/helm.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import type { KubeObject } from "../lab/kube-client.ts";
import { LAN } from "../lab/nodes/networks.ts";
import { deploymentOf, paths } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";
import { cluster, NAMESPACE, seen } from "./shared-cluster.ts";

const GROUP = "/apis/ipam.vendor.io/v1";
const deployments = paths.deployments(NAMESPACE);
const LIMIT_MS = 60_000;
/** A DaemonSet's new pod is there some seconds after the former one has gone. */
const REPLACED_MS = 2_000;

/** As the cluster's administrator. */
async function run(tool: "kubectl" | "helm", ...words: readonly string[]): Promise<string> {
  const program = join(referenceTool(tool).directory, tool);
  const { exitCode, stdout, stderr } = await cluster.run([program, ...words], { timeoutMs: 2 * LIMIT_MS });
  if (exitCode !== 0) throw new Error(`${tool} ${words.join(" ")}: ${stderr}`);
  return stdout;
}

const kubectl = (...words: readonly string[]): Promise<string> => run("kubectl", ...words);

async function remove(name: string): Promise<void> {
  await cluster.client.delete(`${deployments}/${name}`, { propagationPolicy: "Background" });
  await seen.untilGone(name);
}

test("pods start and end with addresses of their own while all agents are replaced, one node after the other", async () => {
  await cluster.client.create(deployments, deploymentOf({ name: "churn", replicas: 6 }));
  const before = await seen.untilReady("churn", 6);
  let version = 1;
  for (const { agent } of cluster.nodes) {
    await agent.kill("SIGTERM");
    const object = deploymentOf({ name: "churn", replicas: 6, version: String(++version) });
    await cluster.client.patch(`${deployments}/churn`, { spec: object.spec });
    await sleep(REPLACED_MS);
    await agent.start();
  }
  const isNew = ({ metadata }: KubeObject): boolean => metadata.labels.version === String(version);
  const after = await seen.untilReady("churn", 6, isNew);
  await seen.untilConsistent();
  await seen.reach(after[0], after);
  const uids = new Set(before.map(({ metadata }) => metadata.uid));
  expect(after.filter(({ metadata }) => uids.has(metadata.uid))).toEqual([]);
  await remove("churn");
  await seen.untilReturned();
});

/** A release of the chart that has pools alone: agents and controller of the lab are none of it. */
function openPools() {
  const chart = copyChart();
  const templates = join(chart.directory, "templates");
  for (const name of readdirSync(templates))
    if (!["_helpers.tpl", "pools.yaml"].includes(name)) rmSync(join(templates, name));
  const helm = (...words: string[]) => run("helm", ...words, "--namespace", NAMESPACE);
  const set = (ips: string) => {
    const values = { subnet: LAN.subnet, gateway: LAN.gateway, ips: [ips] };
    return ["pools", chart.directory, "--set-json", `ipPools=${JSON.stringify({ desk: values })}`];
  };
  return { helm, set, [Symbol.dispose]: () => chart[Symbol.dispose]() };
}

itLong("a range that Helm changes and rolls back: pods keep addresses, and new ones get offered ones", async () => {
  using release = openPools();
  await release.helm("install", ...release.set("10.99.50.1-10.99.50.9"));
  const annotations = { "ipam.vendor.io/ippool": '{"ipv4":["desk"]}' };
  const start = async (name: string) => {
    await cluster.client.create(deployments, deploymentOf({ name, replicas: 3, annotations }));
    return (await seen.untilReady(name, 3)).map(({ status }) => String(status.podIP));
  };
  const isOf = (network: string, addresses: readonly string[]) =>
    addresses.every((address) => address.startsWith(network));
  const first = await start("first");
  expect(isOf("10.99.50.", first), first.join()).toBe(true);
  const columns = async () =>
    (await kubectl("get", "ippools.ipam.vendor.io", "desk", "--no-headers")).split(/ +/).slice(2, 5);
  await expect.poll(columns, { timeout: 10_500 }).toEqual(["9", "3", "6"]);

  await release.helm("upgrade", ...release.set("10.99.51.1-10.99.51.9"));
  const second = await start("second");
  expect(isOf("10.99.51.", second), second.join()).toBe(true);
  expect((await seen.untilReady("first", 3)).map(({ status }) => status.podIP).sort()).toEqual(first.toSorted());
  const left = async () => {
    const { conditions } = (await cluster.client.get(`${GROUP}/ippools/desk`)).status;
    return conditions.find(({ type }: KubeObject) => type === "InUseOutsideRange")?.message;
  };
  await expect.poll(left, { timeout: LIMIT_MS }).toMatch(/^3 addresses of the pool are in use and not among those/);

  await release.helm("rollback", "pools");
  const third = await start("third");
  expect(isOf("10.99.50.", third), third.join()).toBe(true);
  expect(third.filter((address) => first.includes(address))).toEqual([]);
  await seen.untilConsistent();
  for (const name of ["first", "second", "third"]) await remove(name);
  await release.helm("uninstall", "pools");
  await seen.untilReturned();
  await expect
    .poll(() => kubectl("get", "ippools.ipam.vendor.io", "-o", "name"), { timeout: LIMIT_MS })
    .not.toContain("desk");
});

itLong(
  "a node is drained within a budget, reboots and takes pods again; no address is left or lent twice",
  async () => {
    const node = cluster.node("node2");
    await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 6 }));
    await seen.untilReady("web", 6);
    await cluster.client.create(`/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`, {
      ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "web" } },
      spec: { minAvailable: 5, selector: { matchLabels: { app: "web" } } },
    });
    let least = 6;
    const watching = setInterval(async () => {
      const { status } = await cluster.client.get(`${deployments}/web`);
      least = Math.min(least, status.availableReplicas ?? 0);
    }, 200);
    await kubectl("drain", "node2", "--ignore-daemonsets", "--timeout=90s");
    clearInterval(watching);
    expect(least).toBeGreaterThanOrEqual(5);
    const elsewhere = await seen.untilReady("web", 6, ({ spec }) => spec.nodeName !== "node2");
    await seen.untilConsistent();

    await node.crash();
    await node.boot();
    await cluster.ready("node2");
    await kubectl("uncordon", "node2");
    await cluster.client.create(deployments, deploymentOf({ name: "back", replicas: 3, pod: { nodeName: "node2" } }));
    const back = await seen.untilReady("back", 3);
    await seen.untilConsistent();
    await seen.reach(back[0], [...back, ...elsewhere]);
    await cluster.client.delete(`/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets/web`);
    for (const name of ["web", "back"]) await remove(name);
    await seen.untilReturned();
  },
);

itLong("a namespace with 30 pods goes together with their Subnet, and no address or pool stays", async () => {
  const { client } = cluster;
  const namespace = "leaving";
  await client.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await client.create(`${GROUP}/subnets`, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata: { name: "leaving" } },
    spec: { subnet: LAN.subnet, gateway: LAN.gateway, ips: ["10.99.52.1-10.99.52.99"] },
  });
  const annotations = { "ipam.vendor.io/subnet": '{"ipv4":["leaving"]}' };
  await client.create(paths.deployments(namespace), deploymentOf({ name: "many", replicas: 30, annotations }));
  const ready = async () => (await client.get(`${paths.deployments(namespace)}/many`)).status.readyReplicas;
  await untilDefined(async () => (await ready()) === 30 || undefined, ready, 3 * LIMIT_MS);
  await client.delete(`${GROUP}/subnets/leaving`);
  await client.delete(`/api/v1/namespaces/${namespace}`);
  await seen.untilReturned();
  const kinds = "ippools.ipam.vendor.io,subnets.ipam.vendor.io,namespaces";
  await expect.poll(() => kubectl("get", kinds, "-o", "name"), { timeout: 2 * LIMIT_MS }).not.toMatch(/leaving|many/);
});
