/**
 * What the chart, the controller or an administrator wrote is deleted, emptied or replaced while pods run and start
 * (rule known-stays): what it said last stays in force, also after a restart of the agent, and it is said.
 */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type ControllerProcess, startControllerProcess } from "../lab/cluster/controller-process.ts";
import { type FollowedWorld, followWorld } from "../lab/cluster/followed-world.ts";
import * as objects from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { ofRun } from "../world/long-cases.ts";
import { rows } from "../world/rows.ts";
import { type Certificates, installCertificates } from "./certificates.ts";

const OF_SYSTEM = `${objects.NAMESPACES}/${objects.SYSTEM}`;
const REGISTRY = `${OF_SYSTEM}/configmaps/berth-registry`;
const COORDINATOR = `${objects.COORDINATORS}/default`;
const KIND = `${objects.CRDS}/ipallocations.ipam.vendor.io`;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
/** Of n1's first pod. */
const FIRST = "10.6.0.3";
const PATHS: Readonly<Record<string, string>> = {
  "vendor-conf": objects.SETTINGS,
  "berth-registry": REGISTRY,
  Coordinator: COORDINATOR,
  IPPool: `${objects.POOLS}/blue`,
  ReservedIP: `${objects.BERTH}/reservedips/router`,
  IPAllocation: `${objects.ALLOCATIONS}/${FIRST}`,
  definition: "/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions/evil",
  Node: `${objects.NODES}/n1`,
  Lease: `/apis/coordination.k8s.io/v1/namespaces/${objects.SYSTEM}/leases/berth-controller`,
  Secret: `${OF_SYSTEM}/secrets/berth-agent-tls`,
  policy: `${ADMISSION}ies/berth-agent-creates`,
  binding: `${ADMISSION}ybindings/berth-agent-changes`,
  kind: KIND,
};
/** The pool's first address. */
const OF_A_NODE = "10.6.0.1";
const RESERVED = "10.6.0.2";
const SAID = { enableIPv6: false, tenantDefinitions: "closed" };
const TENANT = { type: "coordinator", hostRuleTable: 700 };
const QUICK = ["--lease-duration", "3", "--lease-renew-deadline", "2", "--lease-retry", "0.4"];
const BLUE = { name: "blue", subnet: "10.6.0.0/24", selection: "ascending" };
const PATIENCE = { timeout: 20_000 };
let world: World;
let followed: FollowedWorld;
let controller: ControllerProcess | undefined;
let pods = 0;
let certificates: Certificates;
const firsts = new Map<string, KubeObject>();
const table: string[] = [];

beforeAll(async () => {
  world = await startWorld({ nodes: ["n1", "n2"], pools: [BLUE], settings: SAID, isObserved: true });
  followed = await followWorld(world);
  await objects.applyDefinition(world.client, "shop", "evil", { cniVersion: "1.0.0", name: "evil", plugins: [TENANT] });
  await world.create("ReservedIP", "router", { ips: [RESERVED] });
  await world.setNode("n3", "True");
  const addresses = [{ type: "InternalIP", address: OF_A_NODE }];
  await world.client.patch(`${objects.NODES}/n3/status`, { status: { addresses } });
  certificates = await installCertificates(world, "metrics.enabled=true");
  await lead();
  const occupied = async () => (await world.read("coordinators", "default"))?.status?.occupied?.nodes;
  await until("the Node's address is published", async () => (await occupied())?.join() === OF_A_NODE);
  await until("the settings are kept", async () => (await settings()).includes("closed"));
  expect(await attach("n1")).toBe(FIRST);
  for (const path of Object.values(PATHS)) firsts.set(path, await world.client.get(path));
}, 120_000);
afterAll(async () => {
  console.log(["object, verb | new pods of two nodes | a tenant's table | said", ...table].join("\n"));
  await controller?.stop();
  await certificates?.stop();
  await world?.stop();
});

async function lead(): Promise<void> {
  const args = [...QUICK, ...certificates.args.controller];
  controller = await startControllerProcess({ kubeconfig: await world.controllerKubeconfig(), name: "c", args });
}

/** As the controller keeps them. */
const settings = async (): Promise<string> =>
  (await world.client.get(REGISTRY).catch(() => undefined))?.data?.settings ?? "";
const given = new Set<string>([OF_A_NODE, RESERVED]);

/** The address of a new pod, which no other pod has had, and no Node. */
async function attach(node: string): Promise<string> {
  const pod = await world.createPod({ name: `web-${pods++}`, node, annotations: { ippool: { ipv4: ["blue"] } } });
  const { addresses, refusal } = await world.node(node).runtime.attach(pod, { limitMs: 30_000 });
  const address = addresses.join() || refusal;
  expect(address).toMatch(/^10\.6\.0\./);
  expect([...given]).not.toContain(address);
  given.add(address);
  return address;
}

/** What a tenant's definition is answered that the settings forbid. */
async function tenant(): Promise<string> {
  const networks = { "k8s.v1.cni.cncf.io/networks": "shop/evil" };
  const pod = await world.createPod({ name: `evil-${pods++}`, node: "n1", annotations: networks });
  const { agent, runtime } = world.node("n1");
  const containerId = runtime.newContainerId();
  const netns = await world.wire.sandbox({ pod, containerId });
  const prevResult = { cniVersion: "1.0.0", interfaces: [], ips: [] };
  const { stdout } = await runPlugin({
    ...{ plugin: "coordinator", command: "ADD", ifName: "net1", containerId, netns },
    args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod.name};K8S_POD_UID=${pod.uid}`,
    stdin: { ...TENANT, cniVersion: "1.0.0", name: "evil", prevResult },
    env: agent.env,
  });
  return `${stdout?.code}: ${stdout?.msg}`;
}

/** By the health of n1's agent and the controller's status. */
async function problems(): Promise<string> {
  const agent = (await world.node("n1").agent.get("/v1/health")).problems;
  return [...agent, ...((await controller?.status().catch(() => undefined))?.problems ?? [])].join("; ");
}

/** What a file of it, or a backup, has. */
const copyOf = ({ metadata, status: _, ...object }: KubeObject): KubeObject => {
  const { name, namespace, labels, annotations, finalizers } = metadata;
  return { ...object, metadata: { name, namespace, labels, annotations, finalizers } };
};

/** Another may write it meanwhile. */
const replace = (path: string, change: object, subresource = ""): Promise<void> =>
  vi.waitFor(async () => {
    const now = await world.client.get(path);
    const { resourceVersion } = now.metadata;
    const object = { ...copyOf(now), ...change };
    await world.client.put(`${path}${subresource}`, { ...object, metadata: { ...object.metadata, resourceVersion } });
  });

async function remake(path: string): Promise<void> {
  const { metadata, ...copy } = copyOf(await world.client.get(path));
  await world.client.delete(path);
  const collection = path.slice(0, path.lastIndexOf("/"));
  await world.client.create(collection, { ...copy, metadata: { ...metadata, annotations: {} } });
}

const MALFORMED = { occupied: { nodes: "none" }, conditions: 7, allocations: [] };
/** What others do to an object; `first`: as it was when the test began. */
const VERBS: Readonly<Record<string, (path: string, first: KubeObject) => Promise<unknown>>> = {
  deleted: (path) => world.client.delete(path),
  "deleted and made again": remake,
  emptied: (path) => replace(path, { spec: {}, data: undefined }),
  "with a huge epoch": (path) => world.client.patch(path, { data: { epoch: "x".repeat(500_000) } }),
  "without status": (path) => replace(path, {}, "/status"),
  "malformed status": (path) => replace(path, { status: MALFORMED }, "/status"),
  restored: async (path, { status, ...first }) => {
    await replace(path, copyOf(first));
    if (status !== undefined) await replace(path, { status }, "/status");
  },
};

/** "refused": by the API server; "nothing": nothing is lost; else what the agent or the controller says. */
const CELLS = rows`
  vendor-conf, deleted => vendor-conf is missing
  vendor-conf, deleted and made again => nothing
  vendor-conf, emptied => vendor-conf
  vendor-conf, restored => nothing
  berth-registry, deleted => berth-registry is missing or empty
  berth-registry, deleted and made again => nothing
  berth-registry, emptied => berth-registry is missing or empty
  berth-registry, restored => nothing
  berth-registry, with a huge epoch => berth-registry is missing or empty
  Coordinator, deleted => default is missing
  Coordinator, deleted and made again => nothing
  Coordinator, emptied => nothing
  Coordinator, without status => nothing
  Coordinator, malformed status => refused
  Coordinator, restored => nothing
  policy, deleted => berth-agent-creates is not in force
  IPPool, emptied => refused
  IPPool, without status => nothing
  IPPool, malformed status => refused
  IPPool, restored => nothing
  ReservedIP, deleted and made again => nothing
  ReservedIP, emptied => refused
  ReservedIP, without status => nothing
  ReservedIP, malformed status => refused
  ReservedIP, restored => nothing
  IPAllocation, deleted => refused
  IPAllocation, emptied => refused
  IPAllocation, restored => nothing
  definition, deleted => nothing
  definition, deleted and made again => nothing
  definition, emptied => nothing
  definition, restored => nothing
  Node, deleted and made again => nothing
  Node, restored => nothing
  Lease, deleted => nothing
  Lease, deleted and made again => nothing
  Lease, emptied => nothing
  Lease, restored => nothing
  Secret, deleted => Renewing the certificates
  Secret, deleted and made again => nothing
  Secret, emptied => nothing
  Secret, restored => nothing
  policy, deleted and made again => nothing
  policy, emptied => refused
  policy, restored => nothing
  binding, deleted => berth-agent-changes is not in force
  binding, deleted and made again => nothing
  binding, emptied => refused
  binding, restored => nothing
  kind, deleted => refused
  kind, emptied => refused
  kind, restored => nothing`;
/** These the gate has, too. */
const SHORT = CELLS.findIndex(([cell]) => cell === "IPPool, emptied");

/** Acts, looks, and puts everything back. */
async function see(what: string, path: string, act: (first: KubeObject) => Promise<unknown>, said: string) {
  const before = await world.client.get(path);
  const refusal = await act(firsts.get(path)).then(
    () => "",
    (error: unknown) => String(error),
  );
  expect(refusal).toMatch(said === "refused" ? /40[035]|422/ : /^$/);
  const isSilent = said === "refused" || said === "nothing";
  const isSaid = expect
    .poll(problems, { timeout: 10_000, interval: 100, message: "what is said" })
    .toContain(isSilent ? "" : said);
  const [addresses, answer] = await Promise.all([Promise.all([attach("n1"), attach("n2")]), tenant(), isSaid]);
  const isClosed = answer.includes('"tenantDefinitions" of vendor-conf is closed');
  table.push([what, addresses.join(" "), isClosed ? "refused" : answer, said].join(" | "));
  expect(isClosed, answer).toBe(true);
  return { before, isRefused: refusal !== "" };
}

async function putBack(path: string, first: KubeObject): Promise<void> {
  await world.client.apply(path, copyOf(first));
  await expect.poll(settings, PATIENCE).toContain("closed");
  await expect.poll(problems, PATIENCE).not.toMatch(/missing|vendor-conf|not in force|Renewing/);
}

it.each(ofRun(CELLS, (_, at) => at < SHORT))("%s => %s", { timeout: 120_000 }, async (cell, said) => {
  const [what = "", verb = ""] = cell.split(", ");
  const path = PATHS[what] ?? "";
  const { before, isRefused } = await see(cell, path, async (first) => VERBS[verb]?.(path, first), said);
  if (what === "vendor-conf") {
    await world.node("n1").agent.kill("SIGKILL");
    await world.node("n1").agent.start();
    await attach("n1");
    expect(await tenant()).toContain("is closed");
  }
  if (!isRefused) await putBack(path, before);
});

it.each(["", "enableIPv6: maybe"])("vendor-conf, with the text '%s'", { timeout: 120_000 }, async (text) => {
  const act = () => replace(objects.SETTINGS, { data: { "conf.yml": text } });
  const { before } = await see(`vendor-conf, "${text}"`, objects.SETTINGS, act, "vendor-conf");
  await putBack(objects.SETTINGS, before);
});

it("the kind is made anew while berth-registry is away: no address of a live pod is given", {
  timeout: 120_000,
}, async () => {
  await controller?.stop();
  const kind = copyOf(await world.client.get(KIND));
  await world.client.delete(REGISTRY);
  await expect.poll(problems).toContain("berth-registry");
  await world.client.patch(KIND, { metadata: { annotations: { "ipam.vendor.io/force-delete": "true" } } });
  await followed.history.restoring(async () => {
    await world.client.delete(KIND);
    await expect.poll(() => world.client.get(KIND).then(String, () => "gone"), PATIENCE).toBe("gone");
    await world.client.create(objects.CRDS, { ...kind, metadata: { name: kind.metadata.name } });
  });
  // NICs of this lab cannot be probed: it waits.
  const [waiting] = await Promise.all([attach("n2"), lead()]);
  table.push(`berth-registry deleted, kind made anew | ${waiting}`);
  for (let more = 0; more < 4; more++) await attach("n2");
});
