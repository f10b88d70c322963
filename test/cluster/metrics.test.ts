/**
 * Metrics in a cluster: agent and controller over TLS, to callers whose token the API server accepts, with the rights
 * of the chart.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { get } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { EPOCH_ANNOTATION, EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { applyObject } from "../lab/apply.ts";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { writeControllerKubeconfig } from "../lab/cluster/in-process.ts";
import { NAMESPACES, namespaceObject, POOLS, poolObject } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { type Prometheus, startPrometheus } from "../lab/prometheus.ts";
import { eventually } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PATIENCE = { timeout: 60_000, interval: 200 };
const TENANTS = { subnet: "tenants", interface: "eth0", reclaim: false, wanted: 1, reason: "one pod" };

let world: World;
let controller: ControllerProcess;
/** URLs of their metrics. */
let urls: { readonly agent: string; readonly controller: string };
let token: { readonly prometheus: string; readonly other: string };

/** The cluster roles and bindings of the chart with metrics. */
function metricsRights(): KubeObject[] {
  using chart = copyChart();
  const reader = ["metrics.reader.namespace=monitoring", "metrics.reader.serviceAccount=prometheus"];
  const values = ["metrics.enabled=true", "metrics.tlsSecret=own", ...reader];
  const text = renderChart(chart, PLAIN_RELEASE, "--set", values.join()).get("metrics.yaml") ?? "";
  return parseAllDocuments(text)
    .map((document): KubeObject => document.toJS())
    .filter(({ kind }) => kind.startsWith("ClusterRole"));
}

async function createToken(name: string): Promise<string> {
  const { client } = world;
  const accounts = `${NAMESPACES}/monitoring/serviceaccounts`;
  await client.create(accounts, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } });
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7_200 } };
  return (await client.create(`${accounts}/${name}/token`, request)).status.token;
}

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    pools: [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.19"] }],
  });
  const { client, plane } = world;
  await client.apply(`${NAMESPACES}/monitoring`, namespaceObject("monitoring"));
  for (const object of metricsRights()) await applyObject(client, object);
  token = { prometheus: await createToken("prometheus"), other: await createToken("other") };
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(plane.parts.directory, `metrics-${name}`));
  const pair = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", `${key}`];
  execFileSync("openssl", ["req", "-x509", ...pair, "-out", `${cert}`, "-subj", "/CN=berth"], { stdio: "ignore" });
  const args = ["--metrics-listen", "*:0", "--metrics-cert-file", `${cert}`, "--metrics-key-file", `${key}`];
  const { agent } = await world.addNode("n1", { agent: { args } });
  controller = await startControllerProcess({ kubeconfig: await writeControllerKubeconfig(plane), name: "one", args });
  await eventually(async () => (await controller.status()).isLeading, Boolean, PATIENCE.timeout);
  const find = (log: string): string => /"metrics":"https:[^"]*:(?<port>\d+)"/.exec(log)?.groups?.port ?? "";
  await eventually(async () => find(agent.stderr()), Boolean, PATIENCE.timeout);
  urls = {
    agent: `https://127.0.0.1:${find(agent.stderr())}`,
    controller: `https://127.0.0.1:${find(controller.output())}`,
  };
}, 180_000);
afterAll(async () => {
  await controller?.kill();
  await world?.stop();
});

function scrape(url: string, bearer: string | undefined): Promise<{ readonly status: number; readonly body: string }> {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  return new Promise((resolve, reject) => {
    const question = get(`${url}/metrics`, { headers, agent: false, rejectUnauthorized: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      answer.once("end", () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    question.once("error", reject);
  });
}

describe.each(["agent", "controller"] as const)("the metrics of the %s", (of) => {
  it("are for callers whose token the API server accepts and whose user may get them", async () => {
    const statuses = [token.prometheus, token.other, "made-up", undefined].map(
      async (bearer) => (await scrape(urls[of], bearer)).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 403, 401, 401]);
  });

  it("are what promtool wants", async () => {
    const { body } = await scrape(urls[of], token.prometheus);
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], { input: body, encoding: "utf8" });
    expect([status, stdout, stderr]).toEqual([0, "", ""]);
    for (const name of ["berth_api_requests_total", "berth_watch_last_event_timestamp_seconds", "berth_build_info"])
      expect(body).toContain(`\n${name}{`);
  });
});

describe("a real Prometheus", () => {
  let prometheus: Prometheus;
  beforeAll(async () => {
    prometheus = await startPrometheus({
      targets: Object.entries(urls).map(([job, url]) => ({ job, url, token: token.prometheus })),
    });
  });
  afterAll(() => prometheus?.stop());

  const value = async (expression: string) => (await prometheus.query(expression))[0]?.value;

  it("reads the states of a pool from the leading controller, and this node's from the agent", async () => {
    await expect
      .poll(() => value('berth_pool_addresses{job="controller",pool="blue",state="free"}'), PATIENCE)
      .toBe(10);
    const pod = await world.createPod({ name: "web-0", node: "n1" });
    await world.node("n1").runtime.attach(pod);
    await expect.poll(() => value('berth_pool_addresses{pool="blue",state="bound"}'), PATIENCE).toBe(1);
    await expect.poll(() => value('berth_node_addresses{job="agent",state="bound"}'), PATIENCE).toBe(1);
    await expect
      .poll(() => value('sum(berth_cni_requests_total{command="ADD",code="0"})'), PATIENCE)
      .toBeGreaterThan(0);
    await expect.poll(() => value('sum(berth_prefetch_adds_total{job="agent"})'), PATIENCE).toBe(1);
    expect(await value("berth_controller_leader")).toBe(1);
    expect(await value('berth_api_requests_total{job="agent",verb="POST",code="201"}')).toBeGreaterThan(0);
    expect(await prometheus.query('berth_pool_addresses{job="agent"}')).toEqual([]);
  });

  it("reads what is left of a Subnet: the addresses of a pool made by hand are withheld", async () => {
    await world.subnet("tenants", { subnet: "10.7.0.0/16", ips: ["10.7.0.1-10.7.0.20"] });
    await world.pool("by-hand", { subnet: "10.7.0.0/16", ips: ["10.7.0.1-10.7.0.4"] });
    const state = (name: string) => value(`berth_subnet_addresses{subnet="tenants",family="IPv4",state="${name}"}`);
    await expect.poll(() => state("withheld"), PATIENCE).toBe(4);
    expect([await state("free"), await state("assigned")]).toEqual([16, 0]);
    expect(await value('berth_subnet_size_addresses{subnet="tenants"}')).toBe(20);
    await expect.poll(() => value('count(berth_pool_addresses{pool="by-hand"})'), PATIENCE).toBe(5);
  });

  it("reads that an epoch of the registry is open, and for how many nodes it waits", async () => {
    const open = (job: string) => value(`berth_registry_epoch_open{job="${job}"}`);
    const waiting = () => value("berth_registry_epoch_waiting_nodes");
    const seen = async () => [await open("agent"), await open("controller"), await waiting()];
    await expect.poll(seen, PATIENCE).toEqual([0, 0, 0]);
    await world.setNode("n9", "True");
    await world.client.patch("/api/v1/nodes/n9", {
      metadata: { annotations: { [EPOCH_ANNOTATION]: "an earlier one" } },
    });
    await world.client.patch(`${NAMESPACES}/kube-system/configmaps/${EPOCH_MAP}`, { data: { epoch: "another one" } });
    await expect.poll(seen, PATIENCE).toEqual([1, 1, 1]);
    await world.client.patch("/api/v1/nodes/n9", { metadata: { annotations: { [EPOCH_ANNOTATION]: null } } });
    await expect.poll(seen, PATIENCE).toEqual([0, 0, 0]);
  });

  it("reads no more series when workloads have many generated pools", async () => {
    const series = () => value('count({__name__=~"berth_pool.*"})');
    const before = await series();
    for (let index = 0; index < 30; index++) {
      const application = {
        apiVersion: "apps/v1",
        kind: "Deployment",
        namespace: "shop",
        name: `d${index}`,
        uid: `u${index}`,
      };
      const spec = { subnet: "10.7.0.0/16", ips: [], generated: { ...TENANTS, application } };
      await world.client.create(POOLS, poolObject({ name: `tenant-${index}`, ...spec }));
    }
    await expect.poll(() => value('berth_pools{kind="generated"}'), PATIENCE).toBe(30);
    await expect.poll(() => value('count(berth_pool_addresses{pool="subnet/tenants"})'), PATIENCE).toBe(5);
    // One size and five states.
    expect((await series()) ?? 0).toBe((before ?? 0) + 6);
  });
});
