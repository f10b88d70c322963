/**
 * Metrics in a cluster: agent and controller over TLS, to callers whose token the API server accepts, with the rights
 * of the chart.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { writeControllerKubeconfig } from "../lab/cluster/in-process.ts";
import { NAMESPACES, namespaceObject } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { type Prometheus, startPrometheus } from "../lab/prometheus.ts";
import { eventually } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { type Certificates, type Component, installCertificates } from "./certificates.ts";

/** How long a certificate is valid: seconds. */
const LIFETIME_S = 45;
const PATIENCE = { timeout: 60_000, interval: 200 };

let world: World;
let controller: ControllerProcess;
let certificates: Certificates;
/** URLs of their metrics. */
let urls: { readonly agent: string; readonly controller: string };
let token: { readonly prometheus: string; readonly other: string };

const ACCOUNTS = `${NAMESPACES}/monitoring/serviceaccounts`;

async function createToken(name: string): Promise<string> {
  await world.client.create(ACCOUNTS, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } });
  return requestToken(name);
}

/** Each one differs. */
async function requestToken(name: string): Promise<string> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7_200 } };
  return (await world.client.create(`${ACCOUNTS}/${name}/token`, request)).status.token;
}

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    pools: [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.19"] }],
  });
  const { client, plane } = world;
  await client.apply(`${NAMESPACES}/monitoring`, namespaceObject("monitoring"));
  const reader = ["metrics.reader.namespace=monitoring", "metrics.reader.serviceAccount=prometheus"];
  certificates = await installCertificates(world, ["metrics.enabled=true", ...reader].join());
  token = { prometheus: await createToken("prometheus"), other: await createToken("other") };
  const { args } = certificates;
  const listen = ["--metrics-listen", "*:0"];
  const { agent } = await world.addNode("n1", { agent: { args: [...listen, ...args.agent] } });
  controller = await startControllerProcess({
    ...{ kubeconfig: await writeControllerKubeconfig(plane), name: "one" },
    args: [...listen, ...args.controller, "--certificate-lifetime", String(LIFETIME_S / 86_400)],
  });
  await eventually(async () => (await controller.status()).isLeading, Boolean, PATIENCE.timeout);
  const find = (log: string): string => /"metrics":"https:[^"]*:(?<port>\d+)"/.exec(log)?.groups?.port ?? "";
  await eventually(async () => find(agent.stderr()), Boolean, PATIENCE.timeout);
  urls = {
    agent: `https://127.0.0.1:${find(agent.stderr())}`,
    controller: `https://127.0.0.1:${find(controller.output())}`,
  };
  // Until they show their certificates.
  for (const of of ["agent", "controller"] as const) await scrapeVerified(of, undefined);
}, 180_000);
afterAll(async () => {
  await certificates?.stop();
  await controller?.kill();
  await world?.stop();
});

interface Scraped {
  readonly status: number;
  readonly body: string;
}

/** Rejects if the certificate cannot be verified. */
function scrape(of: Component, bearer: string | undefined): Promise<Scraped> {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const { caFile, serverName: servername } = certificates.trust[of];
  return new Promise((resolve, reject) => {
    const options = { headers, agent: false, ca: readFileSync(caFile), servername };
    const question = get(`${urls[of]}/metrics`, options, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      answer.once("end", () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    question.once("error", reject);
  });
}

/** Authorities live for seconds here, and one may be used before its file has been written: asks again until then. */
const scrapeVerified = (of: Component, bearer: string | undefined) => vi.waitFor(() => scrape(of, bearer), PATIENCE);

describe.each(["agent", "controller"] as const)("the metrics of the %s", (of) => {
  it("are for callers whose token the API server accepts and whose user may get them", async () => {
    const statuses = [token.prometheus, token.other, "made-up", undefined].map(
      async (bearer) => (await scrapeVerified(of, bearer)).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 403, 401, 401]);
  });

  it("satisfy promtool", async () => {
    const { body } = await scrapeVerified(of, token.prometheus);
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
      targets: (["agent", "controller"] as const).map((job) => ({
        ...{ job, url: urls[job], token: token.prometheus, trust: certificates.trust[job] },
      })),
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
});
