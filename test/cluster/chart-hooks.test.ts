/**
 * The hooks of the Helm chart as its pods run them, with the rights that the chart gives them, on a real API server;
 * and a release that a tool deletes object by object, in whatever order and without the hooks, as Argo CD and Flux's
 * Kustomizations do: with `crds.allowDeletion` nothing stays.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";
import { IN_USE_FINALIZER } from "../../host/controller/finalizers/plan-finalizers.ts";
import { copyChart, runHelm } from "../../scripts/chart/helm.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { applyObject, collectionOf } from "../lab/apply.ts";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import {
  allocationObject,
  allocationSpec,
  boundObject,
  CRDS,
  namespaceObject,
  poolObject,
} from "../lab/cluster/objects.ts";
import { type CommandOutcome, runCommand } from "../lab/command.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";
import { KubeError, type KubeObject } from "../lab/kube-client.ts";
import { itLong } from "../world/long-cases.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { outcomeOf } from "./rights-objects.ts";

const NAMESPACE = "net-system";
const API = "/apis/ipam.vendor.io/v1";
const CLEANER = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/net-berth-cleaner`;
const PULLER = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/net-berth-puller`;
const AGENT = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/net-berth-agent`;
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/net-berth-controller`;

const directory = temporaryDirectory("berth-hooks-");
let plane: ControlPlane;
let kubeconfig: string;
let objects: KubeObject[];

const isHook = ({ metadata }: KubeObject): boolean => metadata.annotations?.["helm.sh/hook"] !== undefined;

beforeAll(async () => {
  objects = render("net", { ipPools: { lan: { subnet: "10.7.0.0/24" } } });
  plane = await startControlPlane();
  await applyObject(plane.client, namespaceObject(NAMESPACE) as KubeObject);
  const hooks = objects.filter(isHook);
  for (const object of hooks.filter(({ kind }) => kind !== "Pod")) await applyObject(plane.client, object);
  const { data } = hooks.find(({ kind }) => kind === "ConfigMap") as KubeObject;
  for (const [name, content] of Object.entries(data)) writeFileSync(join(directory, name), String(content));
  kubeconfig = await kubeconfigOf("net-berth-hooks");
});

afterAll(() => plane?.stop());

function render(release: string, values: object, ...more: readonly string[]): KubeObject[] {
  using chart = copyChart();
  const words = ["--namespace", NAMESPACE, "--kube-version", "1.34.4", ...more];
  const sets = Object.entries(values).flatMap(([key, value]) => ["--set-json", `${key}=${JSON.stringify(value)}`]);
  const text = runHelm("template", release, chart.directory, ...words, ...sets);
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);
}

async function tokenOf(account: string): Promise<string> {
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`;
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7_200 } };
  return (await plane.client.create(path, request)).status.token;
}

const kubeconfigOf = async (account: string) => plane.writeKubeconfig(account, { token: await tokenOf(account) });

/** Runs the command of the hook's container; `more` options count last. */
function runHook(name: string, ...more: readonly string[]): Promise<CommandOutcome> {
  const pod = objects.find(({ kind, metadata }) => kind === "Pod" && metadata.name === `net-berth-${name}`);
  const [container] = pod?.spec.containers ?? [];
  expect(container.command).toEqual(["/usr/bin/berth-controller"]);
  const args = container.args.map((word: string) => word.replace("/hook", directory));
  const program = [process.execPath, join(root, "dist", "berth-controller.mjs")];
  return runCommand([...program, ...args, "--kubeconfig", kubeconfig, ...more], { timeoutMs: 90_000 });
}

async function isGone(path: string): Promise<boolean> {
  try {
    await plane.client.get(path);
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 404) return true;
    throw error;
  }
}

const names = async (plural: string): Promise<string[]> =>
  (await plane.client.get(`${API}/${plural}`)).items.map(({ metadata }: KubeObject) => metadata.name);

/**
 * Reports as the DaemonSet controller does, which does not run here: all nodes are done as soon as the DaemonSet
 * exists.
 */
async function reportDone(path: string, numberReady = 2): Promise<void> {
  await expect.poll(() => isGone(path), { timeout: 60_000 }).toBe(false);
  const { metadata } = await plane.client.get(path);
  const status = { observedGeneration: metadata.generation, desiredNumberScheduled: 2, currentNumberScheduled: 2 };
  await plane.client.patch(`${path}/status`, { status: { ...status, numberReady, numberMisscheduled: 0 } });
}

/** A node whose kubelet does not answer. */
async function createDownNode(name: string): Promise<void> {
  const node = `/api/v1/nodes/${name}`;
  await plane.client.apply(node, { apiVersion: "v1", kind: "Node", metadata: { name } });
  await plane.client.patch(`${node}/status`, { status: { conditions: [{ type: "Ready", status: "Unknown" }] } });
}

/** A pod on node n9 that never becomes Ready. */
async function createSilentPod(name: string, labels: object): Promise<void> {
  const pods = `/api/v1/namespaces/${NAMESPACE}/pods`;
  const spec = { nodeName: "n9", serviceAccountName: "default", containers: [{ name: "a", image: "a" }] };
  await plane.client.apply(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`, {
    ...{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } },
  });
  await plane.client.create(pods, { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec });
}

describe("pull-image", () => {
  beforeAll(() => createSilentPod("puller-n9", labelsOf("puller.json")));

  it("waits until all nodes have the image", async () => {
    const done = reportDone(PULLER);
    const { exitCode, stdout, stderr } = await runHook("pull-image");
    await done;
    expect([exitCode, stdout, stderr]).toEqual([0, "All nodes have the image\n", ""]);
    expect(await isGone(PULLER)).toBe(true);
  });

  it("ends in time when a node does not pull it or may have no pod, and says so", async () => {
    const done = reportDone(PULLER, 0);
    const { exitCode, stdout } = await runHook("pull-image", "--limit=3");
    await done;
    const why = `kubectl get events -n ${NAMESPACE} --field-selector involvedObject.name=net-berth-puller`;
    const absent = `1 node without a pod of DaemonSet "net-berth-puller"; why: ${why}\n`;
    expect([exitCode, stdout]).toEqual([0, `Node n9 has not pulled the image in time; going on\n${absent}`]);
    expect(await isGone(PULLER)).toBe(true);
  });

  it("does not wait for a node that is not Ready, and names it", async () => {
    await createDownNode("n9");
    const done = reportDone(PULLER, 1);
    const { exitCode, stdout } = await runHook("pull-image", "--limit=60");
    await done;
    expect([exitCode, stdout]).toEqual([0, "Node n9 is not Ready, and does not have the image; going on\n"]);
    expect(await isGone(PULLER)).toBe(true);
  });

  itLong("waits for the pods of the other nodes while one is not Ready, also before they are created", async () => {
    for (const name of ["n8", "n9"]) await createDownNode(name);
    const done = reportDone(PULLER, 0);
    const startMs = performance.now();
    const { exitCode, stdout } = await runHook("pull-image", "--limit=4");
    await done;
    expect(performance.now() - startMs).toBeGreaterThan(3_400);
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Node n9 is not Ready, .*\n1 node without a pod/)]);
    await plane.client.delete("/api/v1/nodes/n8");
  });
});

describe("apply-crds", () => {
  it("installs the definitions, which are then served", async () => {
    const { exitCode, stderr, stdout } = await runHook("apply-crds");
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout.split("\n")).toContain("Applied ippools.ipam.vendor.io");
    expect(await names("ippools")).toEqual([]);
  });

  it("an upgrade that would change an immutable field is refused before its hooks, with the value", async () => {
    await plane.client.create(`${API}/ippools`, poolObject({ name: "fixed", subnet: "10.9.0.0/24" }) as KubeObject);
    const upgrade = (spec: object) => {
      // Without a release helm template asks for served versions, but not which kinds.
      const served = ["--api-versions", "ipam.vendor.io/v1/IPPool"];
      const words = ["--is-upgrade", "--dry-run=server", "--kubeconfig", plane.kubeconfig, ...served];
      return () => render("net", { ipPools: { fixed: spec } }, ...words).length;
    };
    const refusal = 'IPPool fixed: subnet cannot change from "10.9.0.0/24" to "10.8.0.0/24"; add another IPPool';
    expect(upgrade({ subnet: "10.8.0.0/24" })).toThrow(refusal);
    expect(upgrade({ subnet: "10.9.0.0/24", addressSpace: "lab" })).toThrow(
      /addressSpace cannot change from "" to "lab"/,
    );
    for (const subnet of ["10.9.0.0/24", "10.8.0.0/23"]) expect(upgrade({ subnet })()).toBeGreaterThan(0);
    await plane.client.delete(`${API}/ippools/fixed`);
  });

  it("upgrades definitions that another program has written", async () => {
    const path = `${CRDS}/subnets.ipam.vendor.io`;
    const { spec } = await plane.client.get(path);
    const [version] = structuredClone(spec.versions);
    version.additionalPrinterColumns = [];
    delete version.schema.openAPIV3Schema.properties.spec.properties.namespaceName;
    await plane.client.patch(path, { spec: { versions: [version] } });
    expect((await runHook("apply-crds")).exitCode).toBe(0);
    expect((await plane.client.get(path)).spec.versions).toEqual(spec.versions);
  });

  it("names a file that is no definition, and changes nothing", async () => {
    const other = temporaryDirectory("berth-hooks-", onTestFinished);
    writeFileSync(join(other, "a.yaml"), "kind: ConfigMap\n");
    const program = [process.execPath, join(root, "dist", "berth-controller.mjs"), "apply-crds", other];
    const { exitCode, stderr } = await runCommand([...program, "--kubeconfig", kubeconfig]);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("a.yaml")]);
  });
});

describe("uninstall", () => {
  beforeAll(async () => {
    for (const object of objects.filter((each) => !isHook(each))) await applyObject(plane.client, object);
    const metadata = { finalizers: ["ipam.vendor.io/in-use"] };
    await plane.client.create(`${API}/ippools`, {
      ...poolObject({ name: "blue", subnet: "10.6.0.0/24" }),
      metadata: { name: "blue", ...metadata },
    });
    await plane.client.create(`${API}/ipallocations`, boundObject({ address: "10.6.0.21", node: "n1" }));
    const cooling = allocationSpec("10.6.0.22", { state: "Cooling", holders: [] });
    await plane.client.create(`${API}/ipallocations`, allocationObject(cooling));
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "net-berth-controller" } };
    await plane.client.create(LEASE.replace(/\/[^/]+$/, ""), lease);
  });

  it("is the way: the definitions are protected otherwise", async () => {
    // The API server learns of a new policy a moment later.
    const attempt = () =>
      plane.client.delete(`${CRDS}/ippools.ipam.vendor.io`, { dryRun: ["All"] }).then(() => "", String);
    await expect.poll(attempt, { timeout: 30_000 }).toContain("ipam.vendor.io/force-delete=true");
  });

  it("is done by an account that marks and deletes, and does nothing else", async () => {
    const own = await plane.openClient({ token: await tokenOf("net-berth-hooks") });
    const [address, system] = [`${API}/ipallocations/10.6.0.21`, `/api/v1/namespaces/${NAMESPACE}`];
    const made = boundObject({ address: "10.6.0.23", node: "n1" });
    for (const [attempt, wanted] of [
      [outcomeOf(own.patch(address, { spec: { state: "Cooling", holders: [] } })), /^403 .*may mark and delete it/],
      [outcomeOf(own.patch(address, { metadata: { annotations: { seen: "x" } } })), /^done/],
      [outcomeOf(own.create(`${API}/ipallocations`, made)), /^403 .*cannot create/],
      [outcomeOf(own.patch(`${CRDS}/others.example.org`, { spec: {} })), /^403 .*cannot patch/],
      [outcomeOf(own.delete(`${system}/pods/x`)), /^403 .*cannot delete/],
      [outcomeOf(own.get(`${system}/secrets`)), /^403 .*cannot list/],
    ] as const)
      expect(await attempt).toMatch(wanted);
    own.close();
  });

  it("refuses while clusters lease blocks of a range from here", async () => {
    await plane.client.create(`${API}/rangemembers`, {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "RangeMember", metadata: { name: "lan.east" } },
      spec: { range: "lan", member: "east", user: "east", maxBlocks: 1 },
    });
    const blocks = { "10.6.0.16/28": { pool: "lan", request: "r", since: "2026-01-01T00:00:00Z" } };
    const written = { cluster: "e", token: "t", writes: 1, blocks };
    await plane.client.patch(`${API}/rangemembers/lan.east/status`, { status: written });
    const { exitCode, stderr } = await runHook("uninstall");
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('RangeMember "lan.east" has 1 blocks')]);
    expect(await isGone(AGENT)).toBe(false);
    await plane.client.patch(`${API}/rangemembers/lan.east/status`, { status: { blocks: { "10.6.0.16/28": null } } });
  });

  it("refuses with a list while addresses are in use, and changes nothing", async () => {
    const { exitCode, stdout, stderr } = await runHook("uninstall");
    expect([exitCode, stdout]).toEqual([1, expect.stringMatching(/^ {2}10\.6\.0\.21, pod shop\/web-0 on node n1$/m)]);
    expect(stdout).not.toContain("10.6.0.22");
    expect(stderr).toContain("Refused, nothing was changed: 1 addresses are in use");
    expect([await isGone(AGENT), await isGone(LEASE)]).toEqual([false, false]);
    expect(await names("ipallocations")).toHaveLength(2);
  });

  it("ends in time when a node is never clean, and names it; keeps the objects with --keep-state", async () => {
    await createSilentPod("cleaner-n9", labelsOf("cleaner.json"));
    const startMs = performance.now();
    const { exitCode, stdout, stderr } = await runHook("uninstall", "--force", "--keep-state", "--limit=4");
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(performance.now() - startMs).toBeLessThan(20_000);
    expect(stdout).toContain('Node n9 was not cleaned in time; run "berth-agent uninstall" there');
    expect([await isGone(CLEANER), await isGone(AGENT), await isGone(LEASE)]).toEqual([true, true, true]);
    expect(await names("ipallocations")).toHaveLength(2);
    expect(await names("ippools")).toEqual(["blue", "lan"]);
  });

  it("removes all objects past finalizers and policies when the nodes are clean, and can be repeated", async () => {
    const clean = reportDone(CLEANER);
    const { exitCode, stdout, stderr } = await runHook("uninstall", "--force");
    await clean;
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("All nodes are clean\n");
    for (const kind of [
      "ippools",
      "subnets",
      "ipallocations",
      "ippoolusages",
      "reservedips",
      "coordinators",
      "addressranges",
      "rangemembers",
    ])
      expect(await names(kind), kind).toEqual([]);
    expect(await isGone(CLEANER)).toBe(true);
    const again = reportDone(CLEANER);
    expect((await runHook("uninstall")).exitCode).toBe(0);
    await again;
  });

  it("delete-crds removes the definitions, also when there are none", async () => {
    expect((await runHook("delete-crds")).exitCode).toBe(0);
    expect(await isGone(`${CRDS}/ippools.ipam.vendor.io`)).toBe(true);
    expect((await runHook("delete-crds")).exitCode).toBe(0);
  });
});

/** Labels of the pods of a hook's DaemonSet. */
function labelsOf(file: string): object {
  return JSON.parse(hookFile(file)).spec.selector.matchLabels;
}

function hookFile(name: string): string {
  const config = objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === "net-berth-hooks");
  return config?.data[name];
}

it("a namespace with a quota of requests and limits admits all pods of the chart", async () => {
  const namespace = "quota-system";
  const of = `/api/v1/namespaces/${namespace}`;
  await applyObject(plane.client, namespaceObject(namespace) as KubeObject);
  await plane.client.apply(`${of}/serviceaccounts/default`, {
    ...{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } },
  });
  const hard = { "requests.cpu": "9", "requests.memory": "9Gi", "limits.cpu": "99", "limits.memory": "99Gi" };
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "all" }, spec: { hard } };
  await plane.client.create(`${of}/resourcequotas`, quota);
  const used = Object.fromEntries(Object.keys(hard).map((key) => [key, "0"]));
  await plane.client.patch(`${of}/resourcequotas/all/status`, { status: { hard, used } });
  const nested = ["cleaner.json", "puller.json"].map((name) => JSON.parse(hookFile(name)));
  const templates = [...objects, ...nested].flatMap((each) => each.spec?.template ?? (each.kind === "Pod" ? each : []));
  expect(templates).toHaveLength(8);
  const admit = ({ spec }: KubeObject) => {
    const own = { ...spec, serviceAccountName: "default", restartPolicy: "Always" };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: own };
    return plane.client.create(`${of}/pods?dryRun=All`, pod).then(() => "", String);
  };
  await expect.poll(() => admit({ spec: { containers: [{ name: "a", image: "a" }] } })).toContain("must specify");
  expect(await Promise.all(templates.map(admit))).toEqual(templates.map(() => ""));
  // A hook that cannot start ends the installation, and Helm says why.
  using chart = copyChart();
  const words = ["--namespace", namespace, "--kubeconfig", plane.kubeconfig, "--timeout", "30s"];
  const install = () =>
    runHelm("install", "poor", chart.directory, ...words, "--set-json", "hooks.resources.limits=null");
  expect(install).toThrow(/pre-install.*quota: all: must specify limits\.cpu/s);
});

it("an installation whose hook fails leaves no account of the hooks behind", async () => {
  using chart = copyChart();
  const words = [
    "--namespace",
    "sad-system",
    "--create-namespace",
    "--kubeconfig",
    plane.kubeconfig,
    "--timeout",
    "3s",
  ];
  // Nothing runs the pod here.
  expect(() => runHelm("install", "sad", chart.directory, ...words)).toThrow(/pre-install/);
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const place = "namespaces/sad-system";
  for (const path of [
    `/api/v1/${place}/serviceaccounts/sad-berth-hooks`,
    `${rbac}/${place}/roles/sad-berth-hooks`,
    `${rbac}/${place}/rolebindings/sad-berth-hooks`,
    `${rbac}/clusterroles/sad-berth-hooks`,
    `${rbac}/clusterrolebindings/sad-berth-hooks`,
  ])
    expect(await isGone(path), path).toBe(true);
  const pods = await plane.client.get(`/api/v1/${place}/pods`);
  expect(pods.items.map(({ metadata }: KubeObject) => metadata.name)).toEqual(["sad-berth-apply-crds"]);
}, 60_000);

/** Runs the controller with the options and the account of the release until no pool and no Subnet has a finalizer. */
async function letGo(release: readonly KubeObject[]): Promise<void> {
  const deployment = release.find(({ kind }) => kind === "Deployment");
  const { args } = deployment?.spec.template.spec.containers[0] ?? expect.unreachable();
  const own = args.filter((word: string) => !/^--(in-cluster|listen=)/.test(word));
  const account = await kubeconfigOf("berth-controller");
  const controller = await startControllerProcess({ kubeconfig: account, name: "last", args: own });
  const finalizers = async () => {
    const lists = await Promise.all(["ippools", "subnets"].map((plural) => plane.client.get(`${API}/${plural}`)));
    return lists.flatMap(({ items }) => items).flatMap(({ metadata }: KubeObject) => metadata.finalizers ?? []);
  };
  try {
    await expect.poll(finalizers, { timeout: 60_000, message: controller.output() }).toEqual([]);
  } finally {
    await controller.kill();
  }
}

async function deleteInOrder(order: (release: readonly KubeObject[]) => readonly KubeObject[]): Promise<void> {
  const values = {
    crds: { allowDeletion: true },
    ipPools: { lan: { subnet: "10.7.0.0/24" } },
    subnets: { blue: { subnet: "10.8.0.0/16" } },
    reservedIPs: { routers: { ips: ["10.7.0.1"] } },
    settings: { enableIPv6: false },
  };
  const release = render("berth", values, "--include-crds", "--no-hooks");
  for (const object of release) {
    const isMarked = ["IPPool", "Subnet"].includes(object.kind);
    const metadata = isMarked ? { ...object.metadata, finalizers: [IN_USE_FINALIZER] } : object.metadata;
    await applyObject(plane.client, { ...object, metadata });
  }
  await letGo(release);
  // A pod still runs.
  await applyObject(plane.client, boundObject({ address: "10.7.0.9", node: "n1", pool: "lan" }));
  const paths = await Promise.all(
    release.map(async (object) => `${await collectionOf(plane.client, object)}/${object.metadata.name}`),
  );
  for (const object of order(release)) {
    const path = paths[release.indexOf(object)] ?? "";
    // With its definition an object is gone before its turn.
    if (!(await isGone(path))) await plane.client.delete(path, { propagationPolicy: "Background" });
  }
  for (const path of paths) await expect.poll(() => isGone(path), { timeout: 30_000, message: path }).toBe(true);
}

describe("a release without hooks, whose definitions may be deleted, is gone", () => {
  beforeAll(async () => {
    // As Helm does after the hook.
    for (const object of objects.filter(({ kind }) => kind.startsWith("ValidatingAdmissionPolicy")))
      await plane.client.delete(`${await collectionOf(plane.client, object)}/${object.metadata.name}`);
  });

  it("as it is rendered, definitions first", () => deleteInOrder((release) => release));
  itLong("backwards, the controller before what it keeps", () => deleteInOrder((release) => release.toReversed()));
});
