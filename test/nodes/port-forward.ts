/**
 * The line of docs/map.md that opens the address map of a cluster, typed by its administrator: API server, kubelet
 * and runtime are real.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { createToken } from "../lab/cluster/rights.ts";
import { startDaemon } from "../lab/daemon.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { isReady } from "../lab/nodes/observe.ts";
import { deploymentOf, paths } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { cluster } from "./shared-cluster.ts";

const LINE = /`kubectl (?<words>[^`]*port-forward[^`]*)`/;
const DEPLOYMENT = "berth-controller";
const SYSTEM = "kube-system";

/**
 * A pod on the node's network, as the chart's controller, and the controller's program on that network: agents and
 * controller of the lab are no pods.
 */
async function startControllerPod(): Promise<void> {
  const { client, plane } = cluster;
  const node = cluster.node("node1");
  const pod = { hostNetwork: true, nodeName: node.name };
  await client.create(paths.deployments(SYSTEM), deploymentOf({ name: DEPLOYMENT, pod }));
  const find = async () => {
    const { items } = await client.get(`${paths.pods(SYSTEM)}?labelSelector=app%3D${DEPLOYMENT}`);
    return items as KubeObject[];
  };
  onTestFinished(async () => {
    await client.delete(`${paths.deployments(SYSTEM)}/${DEPLOYMENT}`, { propagationPolicy: "Background" });
    await untilDefined(
      async () => (await find()).length === 0 || undefined,
      async () => JSON.stringify(await find()),
      30_000,
    );
  });
  const kubeconfig = await plane.writeKubeconfig("map", { token: await createToken(client, { account: DEPLOYMENT }) });
  const program = [process.execPath, join(root, "dist", "berth-controller.mjs"), "--kubeconfig", kubeconfig];
  const args = ["--listen", "off", "--map-listen", "127.0.0.1:9476"];
  const argv = ["setpriv", "--pdeathsig", "KILL", "--", ...program, ...args];
  const controller = await startDaemon("berth-controller", node.machine.enter(argv));
  onTestFinished(() => controller.kill());
  // A forwarding ends with the first connection that is refused.
  await untilDefined(
    async () => controller.output().includes('"Started"') || undefined,
    () => controller.output(),
    30_000,
  );
  await untilDefined(
    async () => (await find()).some(isReady) || undefined,
    async () => JSON.stringify(await find()),
    30_000,
  );
}

/** Returns the answer of the page's address on the administrator's machine. */
async function read(path: string): Promise<string | undefined> {
  const { exitCode, stdout } = await cluster.run(["curl", "-sf", `http://localhost:9476${path}`]);
  return exitCode === 0 ? stdout : undefined;
}

/** The map's answer, as far as the test looks at it. */
interface Pools {
  readonly mode: string;
  readonly pools: readonly { readonly name: string }[];
}

test("the address map opens with the documented port-forward, and not before", async () => {
  const words = LINE.exec(readFileSync(join(root, "docs/map.md"), "utf8"))?.groups?.words?.split(" ") ?? [];
  expect(words).toContain(`deploy/${DEPLOYMENT}`);
  await startControllerPod();
  expect(await read("/")).toBeUndefined();
  const kubectl = join(referenceTool("kubectl").directory, "kubectl");
  const forward = await cluster.start([kubectl, ...words]);
  onTestFinished(() => forward.kill());
  const page = await untilDefined(
    () => read("/"),
    () => forward.output(),
    30_000,
  );
  expect(page).toContain("<title>Address map – Berth</title>");
  const pools = await untilDefined(
    async () => {
      const answer: Pools = JSON.parse((await read("/api/v1/pools")) ?? '{"pools":[]}');
      return answer.pools.length > 0 ? answer : undefined;
    },
    () => "no pool",
    30_000,
  );
  expect([pools.mode, pools.pools.map(({ name }) => name)]).toEqual(["cluster", ["lan"]]);
});
