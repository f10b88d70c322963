/**
 * `kubectl berth status` and `kubectl berth test` on real nodes, typed by the cluster's administrator. The agents of
 * the lab are processes: a pod on each node's network stands for one, as far as the API server shows.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StatusRecord } from "../../../../host/cli/status/read-status.ts";
import { referenceTool, root } from "../../../../scripts/setup/paths.mjs";
import { kubernetesBin } from "../../../../test/lab/cluster/plane-parts.ts";
import type { CommandOutcome } from "../../../../test/lab/command.ts";
import { type Daemon, startDaemon } from "../../../../test/lab/daemon.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../../../../test/lab/nodes/cluster.ts";
import { NODE_IMAGE, writeNodeImage } from "../../../../test/lab/nodes/image.ts";
import { daemonSetOf, deploymentOf, paths, podOf } from "../../../../test/lab/nodes/workloads.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { itLong } from "../../../../test/world/long-cases.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import type { TestResult } from "../../connectivity/run-test.ts";

const SYSTEM = "kube-system";
const POOL = "/apis/ipam.vendor.io/v1/ippools/lan";
const ON_NODE = { hostNetwork: true, tolerations: [{ operator: "Exists" }] };

const home = temporaryDirectory("berth-operator-");
let cluster: RealCluster;
const proxies: Daemon[] = [];

/** With the labels that the chart gives. */
function labelled(object: KubeObject, component: string): KubeObject {
  const labels = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": component };
  const { metadata, spec } = object;
  const { template } = spec;
  const own = { ...template.metadata, labels: { ...template.metadata.labels, ...labels } };
  return { ...object, metadata: { ...metadata, labels }, spec: { ...spec, template: { ...template, metadata: own } } };
}

beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 2, images: [await writeNodeImage(home)] });
  const { client, plane, nodes } = cluster;
  const program = [join(kubernetesBin, "kube-proxy"), `--kubeconfig=${plane.kubeconfig}`, "--proxy-mode=nftables"];
  // It ends with the program that enters the machine.
  const bound = ["setpriv", "--pdeathsig", "KILL", "--"];
  const limits = ["--conntrack-max-per-core=0", "--conntrack-min=0"];
  for (const { name, machine } of nodes) {
    // A pod's way to a service leads through its node.
    await machine.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    const argv = machine.enter([...bound, ...program, `--hostname-override=${name}`, ...limits]);
    proxies.push(await startDaemon("kube-proxy", argv));
  }
  const agents = daemonSetOf({ name: "berth-agent", pod: ON_NODE });
  await client.create(paths.daemonSets(SYSTEM), labelled(agents, "agent"));
  const controller = deploymentOf({ name: "berth-controller", pod: ON_NODE });
  await client.create(paths.deployments(SYSTEM), labelled(controller, "controller"));
});
afterAll(async () => {
  for (const proxy of proxies) await proxy.kill();
  await cluster?.stop();
});

const PROGRAM = [process.execPath, join(root, "dist", "kubectl-berth.mjs")];
const environment = () => ({ HOME: home, PATH: `${referenceTool("kubectl").directory}:${process.env.PATH}` });
const berth = (...words: string[]): Promise<CommandOutcome> =>
  cluster.run([...PROGRAM, ...words], { env: environment() });

async function testNamespaces(): Promise<string[]> {
  const { items } = await cluster.client.get("/api/v1/namespaces?labelSelector=app.kubernetes.io%2Fname%3Dberth-test");
  return items.map(({ metadata }: KubeObject) => metadata.name);
}

test("status waits until agents and controller are ready, and shows them and the pool", async () => {
  const { exitCode, stdout, stderr } = await berth("status", "--wait", "120", "-o", "json");
  expect([exitCode, stderr], stdout).toEqual([0, ""]);
  const status: StatusRecord = JSON.parse(stdout);
  expect(status).toMatchObject({ isReady: true, agents: { wanted: 2, ready: 2, updated: 2 }, problems: [] });
  expect(status).toMatchObject({ controllers: { leader: "lab-0" }, pools: [{ name: "lan" }] });
  const shown = await berth("status");
  expect(shown.stdout).toMatch(/^agents +2 of 2 ready\ncontrollers +1 of 1 ready, lab-0 leads\n/);
});

test("test probes gateways, nodes, pods and a service both ways, and leaves nothing", async () => {
  const { exitCode, stdout, stderr } = await berth("test", "--image", NODE_IMAGE, "-o", "json");
  expect([exitCode, stderr], stdout).toEqual([0, ""]);
  const results: TestResult[] = JSON.parse(stdout);
  const found = results.map(({ node, from, to, family, outcome }) => `${node} ${from} → ${to} ${family} ${outcome}`);
  const wanted = [
    ["node1", "node2"],
    ["node2", "node1"],
  ].flatMap(([node, other]) => {
    const ofPod = ["gateway", "its node", `node ${other}`, `pod of ${other}`, "service"].map((to) => `pod → ${to}`);
    const ofNode = ["its pod", `pod of ${other}`, "service"].map((to) => `node → ${to}`);
    return [...ofPod, ...ofNode].map((what) => `${node} ${what} 4 ok`);
  });
  expect(found.sort()).toEqual(wanted.sort());
  expect(await testNamespaces()).toEqual([]);
});

test("test names failed checks and a missing kube-proxy", async () => {
  const { machine } = cluster.node("node2");
  await proxies[1]?.kill();
  const chain = "add chain inet cut out { type filter hook output priority 0; }";
  await machine.run(["nft", `add table inet cut; ${chain}; add rule inet cut out tcp dport 8080 drop`]);
  const { exitCode, stdout } = await berth("test", "--image", NODE_IMAGE, "--no-headers");
  await machine.run(["nft", "delete table inet cut"]);
  const failed = stdout.split("\n").filter((line) => line.includes("failed"));
  expect([exitCode, failed.map((line) => line.split(/ {2,}/).slice(0, 5).join(" "))]).toEqual([
    1,
    [
      ...["node2 pod service IPv4 failed", "node2 node its pod IPv4 failed"],
      ...["node2 node pod of node1 IPv4 failed", "node2 node service IPv4 failed"],
    ],
  ]);
  expect(failed[3]).toContain("no kube-proxy answers on port 10256 of the node, so no Service is reached");
  expect(failed[1]).toContain("no answer within 4 s");
});

itLong("an interrupted test leaves nothing", async () => {
  const variables = Object.entries(environment()).map(([key, value]) => `${key}=${value}`);
  const words = ["test", "--image", "docker.io/local/none:1"];
  const running = await cluster.start(["env", ...variables, ...PROGRAM, ...words]);
  await until("its namespace is there", async () => (await testNamespaces()).length === 1);
  const [name = ""] = await testNamespaces();
  await until("its pods are there", async () => (await cluster.client.get(paths.pods(name))).items.length === 4);
  expect(await running.stop()).toBe(1);
  expect(running.output()).toContain("Interrupted; everything that the test made is removed");
  expect(await testNamespaces()).toEqual([]);
});

test("a pod that gets no address is a failure with the reason, and status shows the waiting pods", async () => {
  const { client } = cluster;
  await client.patch(POOL, { spec: { disable: true } });
  await client.create(paths.pods(NAMESPACE), podOf({ name: "web-0", pod: { nodeName: "node1" } }));
  const { exitCode, stdout } = await berth("--timeout", "15", "test", "--image", NODE_IMAGE);
  expect([exitCode, stdout]).toEqual([
    1,
    expect.stringMatching(/node1 +pod +start +- +failed +pod pod-0 did not start: Pending: .*lan/),
  ]);
  expect((await berth("status")).stdout).toMatch(
    /\nwaiting +1 pod has no address.*\n {2}shop\/web-0: .*→ kubectl berth explain web-0 -n shop\n/,
  );
  await client.patch(POOL, { spec: { disable: false } });
  expect(await testNamespaces()).toEqual([]);
});
