import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { type ControllerProcess, QUICK_LEASE, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { writeControllerKubeconfig } from "../lab/cluster/in-process.ts";
import { poolObject } from "../lab/cluster/objects.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const BERTH = "/apis/ipam.vendor.io/v1";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/berth-controller";
/** A fifth of the defaults. */
const DURATION_MS = 3_000;

let plane: ControlPlane;
let kubeconfig: string;
const running: ControllerProcess[] = [];
beforeAll(async () => {
  plane = await borrowPlane();
  const { client } = plane;
  // Where the controller finds the network of the pods: without it the Coordinator that it makes is not ready.
  const data = { ClusterConfiguration: "networking: {podSubnet: 10.244.0.0/16}" };
  const kubeadm = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "kubeadm-config" }, data };
  await client.create("/api/v1/namespaces/kube-system/configmaps", kubeadm);
  await client.create(`${BERTH}/ippools`, poolObject({ name: "blue", subnet: "10.6.0.0/24" }));
  kubeconfig = await writeControllerKubeconfig(plane);
});
afterAll(() => plane.stop());
afterEach(async () => {
  await Promise.all(running.splice(0).map((controller) => controller.kill()));
});

async function start(name: string, options: { kubeconfig?: string; args?: string[] } = {}): Promise<ControllerProcess> {
  const { args = [] } = options;
  const each = { kubeconfig, name, ...options, args: [...QUICK_LEASE, ...args] };
  const controller = await startControllerProcess(each);
  running.push(controller);
  return controller;
}

function eventually(ask: () => Promise<boolean>, what: string): Promise<number> {
  const logs = () => running.map(({ name, output }) => `${name}:\n${output().slice(-2_000)}`).join("\n");
  return until(() => `${what}\n${logs()}`, ask);
}

const leads = async (controller: ControllerProcess): Promise<boolean> => (await controller.status()).isLeading;
const untilLeads = (controller: ControllerProcess) => eventually(() => leads(controller), `${controller.name} leads`);

async function startTwo(): Promise<{ first: ControllerProcess; second: ControllerProcess }> {
  const first = await start("one");
  await untilLeads(first);
  const second = await start("two");
  const knows = async () => (await second.status()).leader.startsWith("one_");
  await eventually(knows, "the second one has seen who leads");
  return { first, second };
}

const told = (text: string, ms: number) => console.log(`controller: ${text} after ${ms.toFixed(0)} ms`);

/** The exit code and the output. */
async function run(...args: string[]): Promise<{ code: number | null; said: string }> {
  const node = join(root, "node_modules", ".bin", "node");
  const child = spawn(node, [join(root, "dist", "berth-controller.mjs"), ...args], { timeout: 60_000 });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  const [code] = await once(child, "close");
  return { code, said };
}

describe("the command line of the controller", () => {
  it.each([
    [["--kubeconfig", "x", "--in-cluster"], 2, /found both/],
    [["--kubeconfig", "x", "--lease-duration", "9"], 2, /the lease cannot be held: the lease duration is 9000 ms/],
    [["--kubeconfig", "/nowhere"], 1, /found a file that cannot be read \(ENOENT\), want a kubeconfig/],
    [["--in-cluster"], 1, /KUBERNETES_SERVICE_HOST/],
  ])("%j ends with %i", async (args, code, said) => {
    expect(await run(...args)).toEqual({ code, said: expect.stringMatching(said) });
  });

  it("ends with 1 when another process listens on its address", async () => {
    const server = createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const ended = await run("--kubeconfig", kubeconfig, "--listen", `127.0.0.1:${port}`);
    expect(ended).toMatchObject({ code: 1, said: expect.stringContaining("EADDRINUSE") });
  });
});

describe("the built controller, with the rights of deploy/controller.yaml", () => {
  it("leads, follows everything, and has no problems", async () => {
    const startMs = performance.now();
    const controller = await start("one");
    await untilLeads(controller);
    told("a first one led, the API server's first Lease included,", performance.now() - startMs);
    await eventually(async () => (await controller.status()).parts.length > 0, "its parts run");
    const status = await controller.status();
    expect(status).toMatchObject({ isLeading: true, unread: [], problems: [] });
    expect(status.leader).toBe(status.identity);
    expect(status.caches.pools).toMatchObject({ objects: 1, lists: 1 });
    expect(await controller.ask("/healthz")).toEqual({ status: 200, body: "ok\n" });
    expect(await controller.ask("/readyz")).toEqual({ status: 200, body: "ok\n" });
    expect(await controller.stop()).toBe(0);
    expect((await plane.client.get(LEASE)).spec.holderIdentity).toBeUndefined();
    expect(controller.output()).not.toMatch(/"level":"(?:error|fatal)"/);
  });

  it("one of two leads; the other takes over when the leader is killed, within the lease", async () => {
    const { first, second } = await startTwo();
    expect(await leads(second)).toBe(false);
    const { renewTime } = (await plane.client.get(LEASE)).spec;
    const startMs = performance.now();
    await first.kill();
    await untilLeads(second);
    const tookMs = performance.now() - startMs;
    told("kill -9 of the leader (lease of 3 s): the other led", tookMs);
    // All processes of this machine have one clock.
    const { acquireTime } = (await plane.client.get(LEASE)).spec;
    expect(Date.parse(acquireTime) - Date.parse(renewTime)).toBeGreaterThanOrEqual(DURATION_MS);
    expect(tookMs).toBeLessThan(DURATION_MS + 5_000);
  });

  it("continues after the API server was away: none led meanwhile, one leads again", async () => {
    const { first, second } = await startTwo();
    const both = [first, second];
    await plane.server.stop();
    await eventually(async () => !(await leads(first)), "the leader has stopped");
    expect((await first.status()).problems.join("\n")).toContain(
      "Cannot read or write the Lease kube-system/berth-controller",
    );
    expect(await first.ask("/healthz")).toEqual({ status: 200, body: "ok\n" });
    await plane.server.start();
    const someone = async () => (await Promise.all(both.map(leads))).filter(Boolean).length === 1;
    await eventually(someone, "one of them leads");
    const isWell = async () =>
      (await Promise.all(both.map((each) => each.status()))).every((each) => each.problems.length === 0);
    await eventually(isWell, "both have no problems");
  });
});
