/** The life of the Helm chart on real nodes: agents are pods of the release's image with the chart's privileges. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFailed, onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import type { CheckReport } from "../../host/records/check-record.ts";
import { explanationRecord } from "../../host/records/explanation-record.ts";
import { copyChart, runHelm } from "../../scripts/chart/helm.ts";
import { lastReleaseDir, referenceTool, root } from "../../scripts/setup/paths.mjs";
import { tagOf } from "../../scripts/setup/version.mjs";
import { executePart, partsAt } from "../e2e/pages/script.ts";
import { NAMESPACES, namespaceObject } from "../lab/cluster/objects.ts";
import { requireCommand } from "../lab/command.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { type BerthVersion, CURRENT, LAST, writeBerthImages } from "../lab/nodes/berth-images.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import { differenceOf, readApiFootprint, readNodeFootprint } from "../lab/nodes/footprint.ts";
import { BERTH_RANGE, LAN } from "../lab/nodes/networks.ts";
import { isReady, type Observer, observe } from "../lab/nodes/observe.ts";
import { daemonSetOf, deploymentOf, paths, podOf } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

/** Neither is the chart's own name. */
const RELEASE = "odd.one";
const SYSTEM = "strange-place";
const NEXT_FORMAT: BerthVersion = { version: "99.0.0", hasNewerRegistry: true };
const VERSIONS = [LAST, CURRENT, NEXT_FORMAT];
const FIRST_READY_MS = 60_000;
/** Between two of the pods that are replaced. */
const PACE_MS = 1_000;
const FAILURES = ["FailedCreatePodSandBox", "FailedKillPod"];
const WITH_PODS = { propagationPolicy: "Background" };
const NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status";

const deployments = paths.deployments(NAMESPACE);

/** The map's answer, as far as the test looks at it. */
interface History {
  readonly lines: readonly { readonly pod: string; readonly node: string }[];
  readonly problems: readonly string[];
}

/** A reader's directory, with the packages of all versions. */
const home = temporaryDirectory("berth-chart-");
let images: string[];

beforeAll(async () => {
  images = await writeBerthImages(home, VERSIONS);
  using chart = copyChart();
  using last = copyChart(lastReleaseDir());
  for (const each of VERSIONS) {
    const { version } = each;
    const { directory } = each === LAST ? last : chart;
    runHelm("package", directory, "--version", version, "--app-version", version, "--destination", home);
  }
}, 600_000);

const packageOf = ({ version }: BerthVersion): string => join(home, `berth-${version}.tgz`);

const VALUES = {
  apiServer: { host: LAN.gateway },
  // Leaks would be collected after an hour: only a DEL gives an address back.
  settings: { enableIPv6: false, allocationCooldown: "1s", garbageCollection: { interval: "1h" } },
  ipPools: { lan: { subnet: LAN.subnet, gateway: LAN.gateway, ips: [BERTH_RANGE], default: true } },
};

class Scene implements AsyncDisposable {
  readonly cluster: RealCluster;
  readonly seen: Observer;
  #before: string[] = [];

  private constructor(cluster: RealCluster) {
    this.cluster = cluster;
    this.seen = observe(cluster);
  }

  static async open(network?: "overlay"): Promise<Scene> {
    const options = network === undefined ? {} : { network };
    const scene = new Scene(await startRealCluster({ nodes: 3, hasBerth: false, images, ...options }));
    // As the first pod of a node has it made.
    for (const { machine } of scene.cluster.nodes) await machine.run(["mkdir", "-p", "/run/netns"]);
    await scene.cluster.client.apply(`${NAMESPACES}/${SYSTEM}`, namespaceObject(SYSTEM));
    await scene.untilNamespace();
    await scene.untilRegistered();
    if (network !== undefined) await scene.runFirstPods();
    scene.#before = await scene.footprint();
    return scene;
  }

  /** Runs the first pods, so that lasting changes by other plugins do not count as Berth's. */
  async runFirstPods(): Promise<void> {
    const { client, nodes } = this.cluster;
    const path = paths.daemonSets(NAMESPACE);
    await client.create(path, daemonSetOf({ name: "first" }));
    await this.seen.untilReady("first", nodes.length);
    await client.delete(`${path}/first`, WITH_PODS);
    await this.seen.untilGone("first");
  }

  /** Kubernetes puts two objects into each namespace. */
  async untilNamespace(): Promise<void> {
    const path = `${NAMESPACES}/${SYSTEM}`;
    const { client } = this.cluster;
    const ask = () =>
      Promise.all([client.get(`${path}/serviceaccounts/default`), client.get(`${path}/configmaps/kube-root-ca.crt`)]);
    await untilDefined(
      () => ask().catch(() => undefined),
      () => "no account",
      30_000,
    );
  }

  /** A kubelet creates its Node, then the CSINode; without a network the Node does not become Ready. */
  async untilRegistered(): Promise<void> {
    const ask = () => this.cluster.client.get("/apis/storage.k8s.io/v1/csinodes");
    await untilDefined(
      async () => (await ask()).items.length === this.cluster.nodes.length || undefined,
      async () => JSON.stringify(await ask()),
      60_000,
    );
  }

  async footprint(): Promise<string[]> {
    const nodes = await Promise.all(this.cluster.nodes.map(readNodeFootprint));
    return [...(await readApiFootprint(this.cluster.client)), ...nodes.flat()];
  }

  /** Returns the differences between the state now and that before the installation. */
  async leftovers(): Promise<string[]> {
    return differenceOf(this.#before, await this.footprint());
  }

  helm(...args: readonly string[]) {
    const helm = join(referenceTool("helm").directory, "helm");
    return this.cluster.run([helm, ...args, "--namespace", SYSTEM], { cwd: home, timeoutMs: 600_000 });
  }

  async install(values: object, version: BerthVersion): Promise<void> {
    const file = join(home, "values.json");
    await writeFile(file, JSON.stringify({ ...VALUES, ...values }));
    const { exitCode, stderr } = await this.helm("install", RELEASE, packageOf(version), "--values", file);
    expect(exitCode, stderr).toBe(0);
  }

  /** `kubectl berth` of the cluster's administrator; returns its output. */
  async berth(...words: readonly string[]): Promise<string> {
    const path = [referenceTool("kubectl").directory, process.env.PATH].join(":");
    const argv = [process.execPath, join(root, "dist", "kubectl-berth.mjs"), ...words];
    const { exitCode, stdout, stderr } = await this.cluster.run(argv, { env: { HOME: home, PATH: path } });
    expect(exitCode, stdout + stderr).toBe(0);
    return stdout;
  }

  async restartNodes(): Promise<void> {
    for (const node of this.cluster.nodes)
      for (const program of ["containerd", "kubelet"] as const) await node.restart(program);
    await this.cluster.ready();
    await this.untilRead();
  }

  /** Until then a kubelet that has started again refuses `exec`: a pod that it has not read does not exist for it. */
  async untilRead(): Promise<void> {
    const { client, nodes } = this.cluster;
    const unread = async (): Promise<string[]> => {
      const lists = nodes.map(({ name }) => client.get(`/api/v1/nodes/${name}/proxy/pods`));
      const read = (await Promise.all(lists)).flatMap(({ items }) => items ?? []);
      const uids = new Set(read.map(({ metadata }: KubeObject) => metadata.uid));
      const { items } = await client.get("/api/v1/pods?fieldSelector=status.phase%3DRunning");
      return items
        .filter(({ metadata }: KubeObject) => !uids.has(metadata.uid))
        .map(({ metadata }: KubeObject) => metadata.name);
    };
    const ask = () => unread().catch((error: unknown) => [String(error)]);
    await untilDefined(
      async () => (await ask()).length === 0 || undefined,
      async () => (await ask()).join(),
      60_000,
    );
  }

  systemPods(component: string): Promise<KubeObject[]> {
    const label = `app.kubernetes.io/component%3D${component}`;
    return this.cluster.client.get(`${paths.pods(SYSTEM)}?labelSelector=${label}`).then(({ items }) => items);
  }

  async untilAgents({ version }: BerthVersion): Promise<void> {
    const ask = async () => {
      const pods = await this.systemPods("agent");
      const are = pods.filter((pod) => isReady(pod) && pod.spec.containers[0].image.endsWith(`:${tagOf(version)}`));
      return are.length === 3 || undefined;
    };
    await untilDefined(ask, () => this.describe(), 120_000);
  }

  async describe(): Promise<string> {
    const script = `kubectl get pods -A -o wide; kubectl get events -A | tail -40
      for pod in $(kubectl -n ${SYSTEM} get pods -o name); do echo "$pod"; kubectl -n ${SYSTEM} logs --all-containers --tail=30 "$pod"; done`;
    const { stdout, stderr } = await this.cluster.run(["sh", "-c", script]);
    return stdout + stderr;
  }

  /** Returns the failures of sandboxes that containerd could not make or take down. */
  async failures(prefix: string): Promise<string[]> {
    const { items } = await this.cluster.client.get(`/api/v1/namespaces/${NAMESPACE}/events?limit=1000`);
    const bad = items.filter(
      ({ reason, involvedObject }: KubeObject) => FAILURES.includes(reason) && involvedObject.name.startsWith(prefix),
    );
    return bad.map(({ involvedObject, message }: KubeObject) => `${involvedObject.name}: ${message}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster.stop();
  }
}

/** Runs a part of a page for a reader who is in `home`, beside the packages. */
async function followPage(scene: Scene, page: string, section: string | undefined, words: Record<string, string>) {
  const row = partsAt("chart").find(([, part]) => part.page === page && part.section === section);
  if (row === undefined) throw new Error(`No row for ${page}, ${section}`);
  const [, part] = row;
  const path = [referenceTool("helm").directory, referenceTool("kubectl").directory, process.env.PATH].join(":");
  const env = { HOME: home, PATH: path };
  const run = (argv: readonly string[]) => scene.cluster.run(argv, { cwd: home, env, timeoutMs: 900_000 });
  return executePart(part, run, words);
}

/** The blocks of a language in README.md. */
function blocksOfReadme(language: string): string[] {
  const text = readFileSync(join(root, "README.md"), "utf8");
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].flatMap(([, own, block = ""]) =>
    own === language ? [block] : [],
  );
}

/** The words of `$ kubectl get pods` after the program. */
const wordsOf = (block: string): string[] => block.split("\n")[0]?.split(" ").slice(2) ?? [];

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** Prints the state of the release when the test fails. */
function explainFailure(scene: () => Scene | undefined): void {
  onTestFailed(async () => console.log(await scene()?.describe()));
}

async function addressesOf(scene: Scene, app: string): Promise<Record<string, string>> {
  const pods = await scene.seen.pods(app);
  return Object.fromEntries(pods.map(({ metadata, status }) => [metadata.name, status.podIP]));
}

async function removeDeployment({ cluster, seen }: Scene, name: string): Promise<void> {
  await cluster.client.delete(`${deployments}/${name}`, WITH_PODS);
  await seen.untilGone(name);
}

describe("as the primary network", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await Scene.open();
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  it("gives the first pod an address within a minute of helm install", async () => {
    explainFailure(() => scene);
    const { cluster, seen } = scene;
    await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 6 }));
    const startMs = performance.now();
    const primary = { fileName: "05-berth.conflist", name: "lan", master: ["eth0"] };
    await scene.install({ primary, map: { enabled: true } }, LAST);
    const installedMs = performance.now() - startMs;
    const first = async () => (await seen.pods("web")).find(isReady);
    const pod = await untilDefined(first, () => scene.describe(), FIRST_READY_MS);
    const readyMs = performance.now() - startMs;
    console.log(
      `helm install: ${seconds(installedMs)} s; first pod Ready with ${pod.status.podIP}: ${seconds(readyMs)} s`,
    );
    expect(readyMs).toBeLessThan(FIRST_READY_MS);
    await scene.untilAgents(LAST);
    const pods = await seen.untilReady("web", 6);
    await seen.untilConsistent();
    await seen.reach(pods[0], pods);
    const addresses = await addressesOf(scene, "web");
    await scene.restartNodes();
    await seen.untilReady("web", 6);
    expect(await addressesOf(scene, "web")).toEqual(addresses);
    await seen.untilConsistent();
  });

  it("is upgraded from the last release while 50 pods are created and 50 deleted", async () => {
    explainFailure(() => scene);
    const { cluster, seen } = scene;
    const addresses = await addressesOf(scene, "web");
    const churn = paths.pods(NAMESPACE);
    const create = (name: string) => cluster.client.create(churn, podOf({ name, app: "churn" }));
    for (let index = 0; index < 50; index++) await create(`churn-${index}`);
    await seen.untilReady("churn", 50);
    const startMs = performance.now();
    let isUpgraded = false;
    const upgrade = followPage(scene, "docs/upgrade.md", "Upgrade", { VERSION: CURRENT.version }).finally(() => {
      isUpgraded = true;
    });
    // 50 pods at any time, each replaced by another, until both 50 are and the upgrade is done.
    let count = 0;
    for (; count < 50 || !isUpgraded; count++) {
      await create(`churn-${count + 50}`);
      await cluster.client.delete(`${churn}/churn-${count}`);
      await sleep(PACE_MS);
    }
    await upgrade;
    const upgradedMs = performance.now() - startMs;
    await scene.untilAgents(CURRENT);
    const pods = await seen.untilReady("churn", 50);
    const failures = await scene.failures("churn-");
    await seen.untilConsistent();
    expect(await addressesOf(scene, "web")).toEqual(addresses);
    await scene.restartNodes();
    await Promise.all(pods.map(({ metadata }) => cluster.client.delete(`${churn}/${metadata.name}`)));
    await seen.untilGone("churn");
    const inUse = async () => (await seen.allocations()).length === 6 || undefined;
    await untilDefined(inUse, async () => JSON.stringify(await seen.allocations()), 60_000);
    await seen.untilConsistent();
    console.log(
      `helm upgrade: ${seconds(upgradedMs)} s; pods created ${count}, deleted ${count}; failed sandboxes: ${failures.length}; addresses left over: 0`,
    );
    expect(failures).toEqual([]);
  });

  it("is rolled back to the last release and upgraded again, with all addresses", async () => {
    explainFailure(() => scene);
    const { cluster, seen } = scene;
    const addresses = await addressesOf(scene, "web");
    const { exitCode, stderr } = await scene.helm("rollback", RELEASE, "1", "--wait", "--timeout", "5m");
    expect(exitCode, stderr).toBe(0);
    await scene.untilAgents(LAST);
    await cluster.client.create(deployments, deploymentOf({ name: "back", replicas: 3 }));
    await seen.reach((await seen.untilReady("back", 3))[0], await seen.pods());
    expect(await addressesOf(scene, "web")).toEqual(addresses);
    await followPage(scene, "docs/upgrade.md", "Upgrade", { VERSION: CURRENT.version });
    await scene.untilAgents(CURRENT);
    await removeDeployment(scene, "back");
    expect(await addressesOf(scene, "web")).toEqual(addresses);
    await seen.untilConsistent();
  });

  it("answers kubectl berth for all nodes, through kubectl exec into the agents' pods", async () => {
    const { seen } = scene;
    const addresses = Object.values(await addressesOf(scene, "web")).sort();
    const report: CheckReport = JSON.parse(await scene.berth("check", "-o", "json"));
    const findings = report.findings.filter(({ level }) => level !== "warning");
    expect({ ...report, findings, nodes: report.nodes.map(({ node }) => node).sort() }).toMatchObject({
      nodes: ["node1", "node2", "node3"],
      findings: [],
    });
    const rows: { address: string }[] = JSON.parse(await scene.berth("allocations", "-o", "json"));
    expect(rows.map(({ address }) => address).sort()).toEqual(addresses);
    const [pod] = await seen.pods("web");
    const name = pod?.metadata.name ?? "";
    expect(await scene.berth("ip", pod?.status.podIP)).toContain(`${NAMESPACE}/${name}`);
    expect(await scene.berth("history", pod?.status.podIP)).toContain(name);
    expect(await scene.berth("explain", name, "-n", NAMESPACE)).toContain("an ADD of eth0 now would");
    const file = join(home, "bundle.tgz");
    await scene.berth("support-bundle", "--file", file);
    const names = await requireCommand(["tar", "-tzf", file]);
    for (const node of ["node1", "node2", "node3"]) expect(names).toMatch(new RegExp(`/nodes/${node}/.*audit`));
  });

  it("shows the address map through a port-forward, with explanations and histories of the agents' pods", async () => {
    const [pod] = await scene.seen.pods("web");
    const name = pod?.metadata.name ?? "";
    const kubectl = join(referenceTool("kubectl").directory, "kubectl");
    const controller = `deploy/${RELEASE}-berth-controller`;
    const forward = await scene.cluster.start([kubectl, "-n", SYSTEM, "port-forward", controller, "9476"]);
    onTestFinished(() => forward.kill());
    const read = async (path: string): Promise<unknown> => {
      const { exitCode, stdout } = await scene.cluster.run(["curl", "-sf", `http://localhost:9476/api/v1/${path}`]);
      return exitCode === 0 ? JSON.parse(stdout) : undefined;
    };
    const pools = await untilDefined(
      () => read("pools"),
      () => forward.output(),
      30_000,
    );
    expect(pools).toMatchObject({ mode: "cluster", canExplain: true, pools: [{ name: "lan" }] });
    // Agents cannot be asked before kubelets have mounted the controller's content of the Secrets.
    const history = async () => (await read(`history?address=${pod?.status.podIP}`)) as History;
    const { lines } = await untilDefined(
      async () => {
        const found = await history();
        return found.problems.length === 0 ? found : undefined;
      },
      async () => (await history()).problems.join("; "),
      180_000,
    );
    expect(lines.some((line) => line.pod === name && line.node === pod?.spec.nodeName)).toBe(true);
    const explanation = explanationRecord.parse(await read(`explain?in=${NAMESPACE}&pod=${name}`));
    expect(explanation.lines.join("\n")).toContain("an ADD of eth0 now would get");
  });

  it("refuses to go back over a newer registry, loses nothing, and goes forward again", async () => {
    explainFailure(() => scene);
    const { cluster, seen } = scene;
    const addresses = await addressesOf(scene, "web");
    await followPage(scene, "docs/upgrade.md", "Upgrade", { VERSION: NEXT_FORMAT.version });
    await scene.untilAgents(NEXT_FORMAT);
    const { stdout } = await followPage(scene, "docs/upgrade.md", "Rollback", { NEWER: "5" });
    expect(stdout).toMatch(/The registry has format \d+; this version of Berth reads up to format \d+/);
    await scene.untilAgents(NEXT_FORMAT);
    await scene.restartNodes();
    await seen.untilReady("web", 6);
    expect(await addressesOf(scene, "web")).toEqual(addresses);
    await seen.untilConsistent();
    await cluster.client.create(deployments, deploymentOf({ name: "later", replicas: 6 }));
    await seen.reach((await seen.untilReady("later", 6))[0], await seen.pods());
    await removeDeployment(scene, "later");
    await seen.untilConsistent();
  });

  it("refuses to be uninstalled while addresses are in use, and then leaves nothing", async () => {
    explainFailure(() => scene);
    const { seen } = scene;
    const refused = await scene.helm("uninstall", RELEASE, "--timeout", "3m");
    expect(refused.exitCode).not.toBe(0);
    for (const [name, address] of Object.entries(await addressesOf(scene, "web")))
      expect(refused.stdout + refused.stderr).toContain(`${address}, pod ${NAMESPACE}/${name} on node`);
    await seen.untilReady("web", 6);
    await scene.untilAgents(NEXT_FORMAT);
    await removeDeployment(scene, "web");
    await seen.untilReturned();
    const startMs = performance.now();
    await followPage(scene, "docs/uninstall.md", undefined, {});
    console.log(`helm uninstall: ${seconds(performance.now() - startMs)} s`);
    for (const node of scene.cluster.nodes)
      for (const program of ["containerd", "kubelet"] as const) await node.restart(program);
    await expect.poll(() => scene.leftovers(), { timeout: 60_000, interval: 1_000 }).toEqual([]);
  });
});

describe("with Multus", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await Scene.open("overlay");
  });
  afterAll(() => scene?.[Symbol.asyncDispose]());

  /** The README's first screen: its values, its command, its annotation, its table. */
  const [shown = "", annotation = ""] = blocksOfReadme("yaml");
  /** Without the VLAN on a kernel that has none; test/uml/ifacer-chain.test.ts has that part in one that has. */
  const hasVlans =
    spawnSync("unshare", ["-n", "ip", "link", "add", "link", "lo", "name", "v", "type", "vlan", "id", "120"]).status ===
    0;
  const values = hasVlans ? shown : shown.replace(/^ *vlan: 120\n/m, "");
  if (!hasVlans) console.log("This kernel has no VLANs: the README's values are run without `vlan: 120`");
  const annotations = parse(annotation.replace("kube-system", SYSTEM));
  const addressOf = ({ metadata }: KubeObject): string | undefined =>
    JSON.parse(metadata.annotations?.[NETWORK_STATUS] ?? "[]").find(
      ({ interface: name }: KubeObject) => name === "net1",
    )?.ips?.[0];

  it("gives the first pod a second NIC with an address within a minute of the README's helm install", async () => {
    explainFailure(() => scene);
    const { cluster, seen } = scene;
    const startMs = performance.now();
    // The lab's own values: there is no service `kubernetes`, and a node will be down.
    const lab = { apiServer: { host: LAN.gateway }, uninstall: { timeoutSeconds: 60 } };
    await writeFile(join(home, "values.yaml"), `${values}\n${stringify(lab)}`);
    await followPage(scene, "README.md", undefined, { VERSION: CURRENT.version });
    await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 6, annotations }));
    const first = async () => (await seen.pods("web")).find((pod) => isReady(pod) && addressOf(pod) !== undefined);
    const pod = await untilDefined(first, () => scene.describe(), FIRST_READY_MS);
    const readyMs = performance.now() - startMs;
    console.log(`with Multus: first pod Ready with ${addressOf(pod)} on net1: ${seconds(readyMs)} s`);
    expect(readyMs).toBeLessThan(FIRST_READY_MS);
    const pods = await seen.untilReady("web", 6);
    await scene.restartNodes();
    expect(new Set(pods.map(addressOf)).size).toBe(6);
    const bound = (await seen.allocations()).map(({ spec }) => spec.address);
    expect(bound.sort()).toEqual(pods.map((each) => addressOf(each)).sort());
    const [table = ""] = blocksOfReadme("").filter((text) => text.startsWith("$ kubectl"));
    const { stdout } = await cluster.run([join(referenceTool("kubectl").directory, "kubectl"), ...wordsOf(table)]);
    const columns = (text: string | undefined) => text?.trim().split(/ {2,}/);
    expect(columns(stdout.split("\n")[0])).toEqual(columns(table.split("\n")[1]));
    const [, address = "", state, pool] = columns(stdout.split("\n")[1]) ?? [];
    expect([address.startsWith("10.6.0."), state, pool]).toEqual([true, "Bound", "lan"]);
    for (const { machine } of hasVlans ? cluster.nodes : []) {
      const link = await machine.run(["ip", "-d", "link", "show", "eth0.120"]);
      expect(link).toContain("vlan protocol 802.1Q id 120");
    }
  });

  it("is uninstalled by force while a node is down, and cleans that node later", async () => {
    explainFailure(() => scene);
    const { cluster, seen } = scene;
    const down = cluster.node("node3");
    await down.stop("kubelet");
    const isDown = async () => {
      const { status } = await cluster.client.get(`/api/v1/nodes/${down.name}`);
      return (
        status.conditions.some(({ type, status }: KubeObject) => type === "Ready" && status !== "True") || undefined
      );
    };
    await untilDefined(isDown, () => "the node is still Ready", 60_000);
    await cluster.client.delete(`${deployments}/web`, WITH_PODS);
    const onlyThere = async () => {
      const allocations = await seen.allocations();
      return allocations.every(({ spec }) => spec.holders?.[0]?.node === down.name) || undefined;
    };
    await untilDefined(onlyThere, async () => JSON.stringify(await seen.allocations()), 60_000);
    const refused = await scene.helm("uninstall", RELEASE, "--timeout", "3m");
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stdout + refused.stderr).toContain(`on node ${down.name}`);
    const startMs = performance.now();
    const { stdout, stderr } = await followPage(scene, "docs/uninstall.md", "While addresses are in use", {
      REVISION: "1",
      VERSION: CURRENT.version,
    });
    console.log(`helm uninstall while a node is down: ${seconds(performance.now() - startMs)} s`);
    expect(stdout + stderr).toContain(`Node ${down.name} was not cleaned in time`);
    await down.start("kubelet");
    await seen.untilGone("web");
    await followPage(scene, "docs/uninstall.md", "Nodes that do not answer", { VERSION: CURRENT.version });
    await expect.poll(() => scene.leftovers(), { timeout: 60_000, interval: 1_000 }).toEqual([]);
  });
});
