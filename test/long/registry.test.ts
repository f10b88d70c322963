/**
 * From a release to pods, through a registry: `npm run publish` into distribution, Helm installs the chart from there,
 * and the containerd of real nodes pulls the image, which no node has.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it, onTestFailed } from "vitest";
import { readFacts } from "../../scripts/release/facts.ts";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { tagOf } from "../../scripts/setup/version.mjs";
import { CURRENT, writeBerthImages } from "../lab/nodes/berth-images.ts";
import { NAMESPACE, startRealCluster } from "../lab/nodes/cluster.ts";
import { ctr, LAB_REGISTRY, type Runtime } from "../lab/nodes/containerd.ts";
import { BERTH_RANGE, LAN } from "../lab/nodes/networks.ts";
import { observe } from "../lab/nodes/observe.ts";
import { deploymentOf, paths } from "../lab/nodes/workloads.ts";
import { startRegistry } from "../lab/registry.ts";
import { writeSmallRelease } from "../lab/small-release.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const TAG = tagOf(CURRENT.version);
const PLACE = `${LAB_REGISTRY}/network`;
const VALUES = {
  "apiServer.host": LAN.gateway,
  "controller.replicas": "1",
  "image.repository": `${PLACE}/berth`,
  ...{ "primary.fileName": "05-berth.conflist", "primary.name": "lan", "primary.master[0]": "eth0" },
  ...{ "ipPools.lan.subnet": LAN.subnet, "ipPools.lan.gateway": LAN.gateway, "ipPools.lan.default": "true" },
  ...{ "ipPools.lan.ips[0]": BERTH_RANGE, "settings.enableIPv6": "false" },
};

const directory = temporaryDirectory("berth-registry-");
const inside = (name: string): string => join(directory, name);

beforeAll(async () => {
  const [image = ""] = await writeBerthImages(directory, [CURRENT]);
  const here = process.arch === "arm64" ? "arm64" : "amd64";
  await writeSmallRelease(inside("release"), readFacts(), { images: { [here]: await readFile(image) } });
}, 600_000);

it.each<Runtime>(["containerd-1", "containerd-2"])("helm and %s install what was published", async (runtime) => {
  await using cluster = await startRealCluster({ nodes: 2, hasBerth: false, runtime });
  const { client, nodes } = cluster;
  onTestFailed(async () => {
    const { stdout } = await cluster.run(["sh", "-c", "kubectl get pods -A -o wide; kubectl get events -A | tail -40"]);
    console.log(stdout);
  });
  for (const { machine } of nodes) await machine.run(["mkdir", "-p", "/run/netns"]);
  const words = { address: LAB_REGISTRY, start: (argv: readonly string[]) => cluster.start(argv) };
  await using _ = await startRegistry({ directory: inside(runtime), ...words });
  const script = join(root, "scripts", "release", "publish.ts");
  const publish = [process.execPath, script, PLACE, "--release", inside("release"), "--plain-http"];
  const published = await cluster.run(publish, { env: { DOCKER_CONFIG: directory } });
  expect(published).toMatchObject({ exitCode: 0, stderr: "" });

  const helm = join(referenceTool("helm").directory, "helm");
  const values = Object.entries(VALUES).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
  const chart = [`oci://${PLACE}/charts/berth`, "--plain-http", "--devel"];
  const argv = [helm, "install", "berth", ...chart, "--namespace", "kube-system", ...values];
  const installed = await cluster.run(argv, { timeoutMs: 300_000 });
  expect(installed.exitCode, installed.stderr).toBe(0);

  await client.create(paths.deployments(NAMESPACE), deploymentOf({ name: "web", replicas: 4 }));
  const seen = observe(cluster);
  await seen.untilReady("web", 4);
  await seen.untilConsistent();
  for (const { machine } of nodes)
    expect(await ctr(machine, runtime, "images", "list", "--quiet")).toContain(`${PLACE}/berth:${TAG}`);
});
