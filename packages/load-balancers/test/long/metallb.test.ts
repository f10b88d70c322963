/**
 * MetalLB's speakers, installed by its own chart with the values of docs/services.md, on real nodes: a client on the
 * segment is answered for the addresses of Services by one node, and never for one without a record. The controller is
 * killed between its steps, and speakers too, while the lab's observer asks for all addresses.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { referenceTool, root } from "../../../../scripts/setup/paths.mjs";
import { QUICK_LEASE } from "../../../../test/lab/cluster/controller-process.ts";
import { ALLOCATIONS, NAMESPACES, namespaceObject } from "../../../../test/lab/cluster/objects.ts";
import { downloadModule, METALLB } from "../../../../test/lab/cluster/peer-kinds.ts";
import { createToken } from "../../../../test/lab/cluster/rights.ts";
import type { Daemon } from "../../../../test/lab/daemon.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { startKubeProxy } from "../../../../test/lab/kube-proxy.ts";
import type { Netns } from "../../../../test/lab/netns.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../../../../test/lab/nodes/cluster.ts";
import { writeImage } from "../../../../test/lab/nodes/image.ts";
import { plugIn } from "../../../../test/lab/nodes/node.ts";
import { observe } from "../../../../test/lab/nodes/observe.ts";
import { deploymentOf, paths } from "../../../../test/lab/nodes/workloads.ts";
import { CLASS } from "../../service.ts";
import { grantMetallb, METALLB_BINDING, METALLB_NAMESPACE, metallbObjects, withoutStatus } from "../lab/metallb.ts";

const SERVICES = `${NAMESPACES}/${NAMESPACE}/services`;
/** No pod has an address there, so that answers to all that ask a Service come back through their node. */
const ELSEWHERE = "10.244.0.0/16";
const PATIENCE = { timeout: 90_000, interval: 250 };
const stack = new AsyncDisposableStack();
let cluster: RealCluster;
let client: Netns;
let controller: Daemon;

beforeAll(async () => {
  const home = await mkdtemp(join(tmpdir(), "berth-metallb-"));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const images = await Promise.all(["speaker", "controller"].map((name) => writeMetallbImage(home, name)));
  // It finds the endpoints of webhooks itself, for its machine has no kube-proxy; and pods find it.
  const serverArgs = ["--enable-aggregator-routing=true", "--endpoint-reconciler-type=lease"];
  cluster = stack.use(await startRealCluster({ nodes: 2, controllers: 0, isObserved: true, images, serverArgs }));
  const { plane, nodes } = cluster;
  for (const { name, machine } of nodes) {
    // As kubeadm wants it of a node.
    await machine.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    const proxy = await startKubeProxy({ ...machine.netns, name }, { plane, mode: "nftables", clusterCIDR: ELSEWHERE });
    stack.defer(() => proxy.stop());
  }
  client = await plugIn(cluster.switch, "client", "10.99.0.50");
  stack.defer(() => client.delete());
  await cluster.client.apply(`${NAMESPACES}/${METALLB_NAMESPACE}`, namespaceObject(METALLB_NAMESPACE));
  await grantMetallb(cluster.client);
  stack.defer(() => controller?.kill());
  await startController();
  await installMetallb(home);
  const page = { busybox: ["sh", "-c", "echo reached > /index.html; exec /bin/busybox httpd -f -p 8080 -h /"] };
  await cluster.client.create(paths.deployments(NAMESPACE), deploymentOf({ name: "web", replicas: 2, ...page }));
  await observe(cluster).untilReady("web", 2);
}, 600_000);
/** Throws the observer's findings. */
afterAll(() => stack.disposeAsync(), 120_000);

async function writeMetallbImage(home: string, program: string): Promise<string> {
  const content = await readFile(join(referenceTool("metallb").directory, program));
  const name = `quay.io/metallb/${program}:v${referenceTool("metallb").version}`;
  return writeImage(join(home, `${program}.tar`), {
    ...{ name, command: [], files: [{ path: program, content, mode: 0o755 }] },
  });
}

async function installMetallb(home: string): Promise<void> {
  const text = await readFile(join(root, "docs", "services.md"), "utf8");
  const [, values = ""] = /^### MetalLB$.*?^```yaml\n(.*?)^```/ms.exec(text) ?? [];
  expect(values).toContain(CLASS);
  await writeFile(join(home, "values.yaml"), values);
  const helm = join(referenceTool("helm").directory, "helm");
  const chart = join(await downloadModule(METALLB), "charts", "metallb");
  // The images here have no entry points; there is none of FRR, which is for BGP; every node has a speaker.
  const own = ["speaker.command=/speaker", "controller.command=/controller", "speaker.frr.enabled=false"];
  const argv = [helm, "install", "metallb", chart, "--namespace", METALLB_NAMESPACE, "--values", "values.yaml"];
  const all = [...argv, "--set", own.join(), "--set", "speaker.memberlist.enabled=false"];
  const { exitCode, stderr } = await cluster.run(all, { cwd: home });
  expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
}

async function startController(): Promise<void> {
  const token = await createToken(cluster.client, { account: "berth-controller", expirationSeconds: 36_000 });
  const kubeconfig = await cluster.plane.writeKubeconfig("controller", { token });
  const program = [process.execPath, join(root, "dist", "berth-controller.mjs"), "--kubeconfig", kubeconfig];
  const own = ["--identity", "one", "--listen", "off", "--metallb-namespace", METALLB_NAMESPACE];
  controller = await cluster.start([...program, ...QUICK_LEASE, ...own]);
}

async function make(name: string): Promise<void> {
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  const spec = { type: "LoadBalancer", loadBalancerClass: CLASS, selector: { app: "web" }, ports };
  await cluster.client.create(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name }, spec });
}

async function addressOf(name: string): Promise<string | undefined> {
  return (await cluster.client.get(`${SERVICES}/${name}`)).status.loadBalancer.ingress?.[0]?.ip;
}

async function recorded(name: string): Promise<string | undefined> {
  const { items } = await cluster.client.get(ALLOCATIONS);
  return items.find(({ spec }: KubeObject) => spec.workload?.name === name)?.spec.address;
}

/** The nodes that answer for it, as a client on the segment learns them. */
async function answering(address: string): Promise<string[]> {
  const { stdout } = await client.exec(["arping", "-c", "2", "-w", "2", "-I", "eth0", address]);
  const macs = new Set(stdout.match(/(?<=\[)[0-9A-F:]{17}(?=\])/g)?.map((mac) => mac.toLowerCase()));
  const links = await Promise.all(cluster.nodes.map(({ machine }) => machine.netns.ipJson("link show dev eth0")));
  const names = new Map(links.map((link, at) => [(link as KubeObject)[0].address, cluster.nodes[at]?.name ?? ""]));
  return [...macs].map((mac) => names.get(mac) ?? mac);
}

const page = async (address: string): Promise<string> =>
  (await client.exec(["curl", "--silent", "--max-time", "3", `http://${address}/`])).stdout.trim();

/** The address of the Service, once one node answers for it and its pods are reached there. */
async function reached(name: string): Promise<string> {
  await expect.poll(() => addressOf(name), PATIENCE).toMatch(/^10\.99\.\d+\.\d+$/);
  const address = (await addressOf(name)) ?? "";
  expect(await recorded(name)).toBe(address);
  await expect.poll(() => answering(address), PATIENCE).toEqual([expect.stringMatching(/^node[12]$/)]);
  await expect.poll(() => page(address), PATIENCE).toBe("reached");
  return address;
}

it("a client on the segment is answered by one node, and by none without a record, whatever is killed between", {
  timeout: 600_000,
}, async () => {
  await make("first");
  const first = await reached("first");
  // An agent has probed it.
  expect((await cluster.client.get(`${SERVICES}/first`)).status.conditions[0].message).toBe(first);
  // Killed between the record and MetalLB's pool.
  await cluster.client.delete(METALLB_BINDING);
  await make("second");
  await expect.poll(() => recorded("second"), PATIENCE).toMatch(/^10\.99\./);
  const second = (await recorded("second")) ?? "";
  expect([await answering(second), await addressOf("second")]).toEqual([[], undefined]);
  await controller.kill();
  await grantMetallb(cluster.client);
  await startController();
  expect(await reached("second")).toBe(second);
  // Killed between MetalLB's pool and the status.
  await withoutStatus(cluster.client, async () => {
    await make("third");
    await expect.poll(async () => (await metallbObjects(cluster.client))[0]?.split(",").length, PATIENCE).toBe(3);
    const third = (await recorded("third")) ?? "";
    expect([await answering(third), await addressOf("third")]).toEqual([[], undefined]);
    await controller.kill();
  });
  await startController();
  const third = await reached("third");
  expect((await metallbObjects(cluster.client))[0]?.split(/[ ,]/).slice(2).sort()).toEqual(
    [first, second, third].map((address) => `${address}/32`).sort(),
  );
  // A speaker is killed, and comes back.
  for (const { machine } of cluster.nodes) {
    const pid = (await machine.run(["pgrep", "-x", "speaker"])).trim();
    await machine.run(["kill", "-9", pid]);
    for (const name of ["first", "second", "third"]) await reached(name);
  }
  for (const name of ["first", "second", "third"]) await cluster.client.delete(`${SERVICES}/${name}`);
  for (const address of [first, second, third]) await expect.poll(() => answering(address), PATIENCE).toEqual([]);
  const left = async () => [await metallbObjects(cluster.client), await recorded("first"), await recorded("third")];
  await expect.poll(left, PATIENCE).toEqual([[], undefined, undefined]);
});
