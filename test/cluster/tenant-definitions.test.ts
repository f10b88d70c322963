/** `tenantDefinitions: closed` of vendor-conf, through the built plugins and agent. */
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { MAX_LOG_FILES } from "../../host/agent/coordinator/plugin-logs.ts";
import { findOpen } from "../../host/cli/check/find-open.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import { applyDefinition, SYSTEM } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";
import { borrowPlane } from "./borrow-plane.ts";

const ENTRIES = {
  ifacer: { type: "ifacer", interfaces: ["absent0"], vlanID: 120 },
  table: { type: "coordinator", hostRuleTable: 700 },
  log: { type: "coordinator", logOptions: { logFile: "/var/log/vendor/own.log" } },
  plain: { type: "coordinator" },
} as const;
/** One more than are opened for tenants, and another one. */
const LOGS = Array.from({ length: MAX_LOG_FILES + 2 }, (_, index) => `evil${index}.log`);

let world: World;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1"],
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
    settings: { tenantDefinitions: "closed" },
  });
  for (const namespace of ["shop", SYSTEM])
    for (const [name, entry] of Object.entries(ENTRIES))
      await applyDefinition(world.client, namespace, name, { cniVersion: "1.0.0", name, plugins: [entry] });
});
afterAll(() => world?.stop());

/** Returns the answer to the plugin's ADD for a pod that names the definition. */
async function add(
  namespace: string,
  name: string,
  { networks = `${namespace}/${name}`, entry = Object(ENTRIES)[name] } = {},
): Promise<string> {
  const pod = await world.createPod({
    name: `${namespace}-${name}`,
    node: "n1",
    annotations: { "k8s.v1.cni.cncf.io/networks": networks },
  });
  const { agent, netnsPath } = world.node("n1");
  const containerId = world.node("n1").runtime.newContainerId();
  const { exitCode, text, stdout } = await runPlugin({
    plugin: entry.type,
    command: "ADD",
    containerId,
    netns: netnsPath,
    ifName: "net1",
    args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod.name};K8S_POD_UID=${pod.uid}`,
    stdin: { ...entry, cniVersion: "1.0.0", name, prevResult: { cniVersion: "1.0.0", interfaces: [], ips: [] } },
    env: agent.env,
  });
  await world.deletePod(pod);
  return exitCode === 0 ? "ok" : `${stdout?.code}: ${stdout?.msg ?? text}`;
}

const CLOSED = /^7: .*"tenantDefinitions" of vendor-conf is closed/;

it.for(["ifacer", "table", "log"] as const)(
  "refuses what %s uses to a tenant's definition, not to one of the release's namespace",
  async (name) => {
    expect(await add("shop", name)).toMatch(CLOSED);
    expect(await add(SYSTEM, name)).not.toMatch(CLOSED);
  },
);

it("refuses it also to a NIC that the pod does not announce", async () => {
  expect(await add("shop", "ifacer", { networks: "[]" })).toMatch(CLOSED);
});

it("refuses nothing to a definition that uses none of it", async () => {
  expect(await add("shop", "plain")).not.toMatch(CLOSED);
});

it("is open again at once, and check names the rest", async () => {
  const api = await connectClient(world.plane.kubeconfig, "test");
  onTestFinished(() => api.close());
  await world.client.apply(`/apis/ipam.vendor.io/v1/subnets/all`, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata: { name: "all" } },
    spec: { subnet: "10.7.0.0/24", ips: ["10.7.0.1-10.7.0.9"] },
  });
  expect(await findOpen(api, SYSTEM)).toEqual([]);
  await world.settings({ enableIPv6: false });
  expect((await findOpen(api, SYSTEM)).map(({ text }) => text)).toEqual([
    'network definitions outside namespace "kube-system" use the plugin "ifacer" (shop/ifacer), "logOptions.logFile" (shop/log), "hostRuleTable" (shop/table)',
    "Subnets that name no namespaces serve all: all",
  ]);
  await expect.poll(() => add("shop", "ifacer"), { timeout: 20_000 }).not.toMatch(CLOSED);
});

it("more log files than tenants may name end no ADD of others, and are not made", async () => {
  const answers = new Set<string>();
  for (const file of LOGS) {
    const entry = { type: "coordinator", logOptions: { logFile: `/var/log/vendor/${file}` } };
    await applyDefinition(world.client, "shop", file, { cniVersion: "1.0.0", name: file, plugins: [entry] });
    answers.add(await add("shop", file, { entry }));
  }
  expect([...answers]).toEqual([await add("shop", "plain")]);
  const made = readdirSync(world.node("n1").agent.logDir).filter((name) => LOGS.includes(name));
  expect(made).toHaveLength(MAX_LOG_FILES);
});
