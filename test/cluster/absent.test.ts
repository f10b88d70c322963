/**
 * State of the chart, the controller or an administrator is deleted, emptied or replaced while pods run and start (rule
 * known-stays): its last content stays in force, also after a restart of the agent, and this is said.
 */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { ControllerProcess } from "../lab/cluster/controller-process.ts";
import { type FollowedWorld, followWorld } from "../lab/cluster/followed-world.ts";
import * as objects from "../lab/cluster/objects.ts";
import { FORCE_DELETE } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { itLong, ofRun } from "../world/long-cases.ts";
import { rows } from "../world/rows.ts";
import { type Certificates, installCertificates } from "./certificates.ts";
import { copyOf, replace, VERBS } from "./verbs.ts";

const OF_SYSTEM = `${objects.NAMESPACES}/${objects.SYSTEM}`;
const REGISTRY = `${OF_SYSTEM}/configmaps/berth-registry`;
const COORDINATOR = `${objects.COORDINATORS}/default`;
const KIND = `${objects.CRDS}/ipallocations.ipam.vendor.io`;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
/** Of n1's first pod. */
const FIRST = "10.6.0.3";
/** The pool's first address. */
const OF_A_NODE = "10.6.0.1";
const [OWNED, OF_A_SERVICE, OF_A_MEMBER] = ["10.6.0.4", "10.6.0.5", "10.6.0.6"];
const PATHS: Readonly<Record<string, string>> = {
  "vendor-conf": objects.SETTINGS,
  "berth-registry": REGISTRY,
  Coordinator: COORDINATOR,
  IPPool: `${objects.POOLS}/blue`,
  ReservedIP: `${objects.BERTH}/reservedips/router`,
  IPAllocation: `${objects.ALLOCATIONS}/${FIRST}`,
  "record of a Node": `${objects.ALLOCATIONS}/${OF_A_NODE}`,
  "record of a Service": `${objects.ALLOCATIONS}/${OF_A_SERVICE}`,
  "record of a member": `${objects.ALLOCATIONS}/${OF_A_MEMBER}`,
  reservation: `${objects.BERTH}/reservedips/owned`,
  Service: `${objects.NAMESPACES}/shop/services/front`,
  definition: "/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions/evil",
  Node: `${objects.NODES}/n1`,
  Lease: `/apis/coordination.k8s.io/v1/namespaces/${objects.SYSTEM}/leases/berth-controller`,
  Secret: `${OF_SYSTEM}/secrets/berth-agent-tls`,
  policy: `${ADMISSION}ies/berth-agent-creates`,
  binding: `${ADMISSION}ybindings/berth-agent-changes`,
  kind: KIND,
};
const RESERVED = "10.6.0.2";
const TENANT = { type: "coordinator", hostRuleTable: 700 };
const BLUE = { name: "blue", subnet: "10.6.0.0/24", selection: "ascending" };
const BY_HAND = { annotations: { ippool: { ipv4: ["blue"] } } };
const PATIENCE = { timeout: 20_000 };
let world: World;
let followed: FollowedWorld;
let controller: ControllerProcess | undefined;
let pods = 0;
let certificates: Certificates;
const firsts = new Map<string, KubeObject>();
const table: string[] = [];

beforeAll(() => open(), 120_000);
afterAll(async () => {
  console.log(["object, verb | new pods of two nodes | a tenant's table | said", ...table].join("\n"));
  await close();
});

/** `never`: missing when the first agent and the first controller start. */
async function open(never?: string): Promise<void> {
  world = await startWorld({ settings: { enableIPv6: false, tenantDefinitions: "closed" } });
  await world.openWire([BLUE, { name: "more", subnet: "10.7.0.0/24" }], { graceMs: 60_000 });
  await world.client.create(objects.POOLS, objects.poolObject(BLUE));
  followed = await followWorld(world);
  await objects.applyDefinition(world.client, "shop", "evil", { cniVersion: "1.0.0", name: "evil", plugins: [TENANT] });
  await world.create("ReservedIP", "router", { ips: [RESERVED] });
  await world.setNode("n3", "True");
  if (never !== undefined && never !== COORDINATOR) await world.create("Coordinator", "default", {});
  const addresses = [{ type: "InternalIP", address: OF_A_NODE }];
  await world.client.patch(`${objects.NODES}/n3/status`, { status: { addresses } });
  await world.create("ReservedIP", "owned", { ips: [OWNED], owner: { namespace: "shop", name: "later" } });
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "front" }, spec: { ports: [{ port: 80 }] } };
  await world.client.create(`${objects.NAMESPACES}/shop/services`, {
    ...service,
    spec: { ...service.spec, type: "LoadBalancer" },
  });
  await world.client.patch(`${PATHS.Service}/status`, {
    status: { loadBalancer: { ingress: [{ ip: OF_A_SERVICE }] } },
  });
  certificates = await installCertificates(world, "metrics.enabled=true");
  if (never !== undefined) await remove(never);
  await Promise.all(["n1", "n2"].map((name) => world.addNode(name)));
  if (never !== undefined) return;
  await lead();
  const stateOf = async (ip: string) => (await world.read("ipallocations", ip))?.spec.state;
  for (const ip of [OF_A_NODE, OF_A_SERVICE])
    await until("another's address is recorded", async () => (await stateOf(ip)) === "Kept");
  await until("the settings are kept", async () => (await settings()).includes("closed"));
  expect(await attach("n1")).toBe(FIRST);
  const { namespace: _, ...owner } = await objects.createWorkload(world.client, "StatefulSet", "kept", { replicas: 1 });
  const annotations = { ...BY_HAND.annotations, ips: [{ ipv4: OF_A_MEMBER }] };
  const member = await world.createPod({ name: "kept-0", node: "n2", owner, annotations });
  const { runtime } = world.node("n2");
  expect((await runtime.attach(member)).addresses).toEqual([OF_A_MEMBER]);
  await runtime.detach(member);
  await world.deletePod(member);
  await until("the member's address is kept", async () => (await stateOf(OF_A_MEMBER)) === "Kept");
  for (const path of Object.values(PATHS)) firsts.set(path, await world.client.get(path));
}

async function close(): Promise<void> {
  await controller?.stop();
  controller = undefined;
  await certificates?.stop();
  await world?.stop();
  given.clear();
}

async function lead(): Promise<void> {
  controller = await world.startController("c", ...certificates.args.controller);
}

/** As the controller keeps them. */
const settings = async (): Promise<string> =>
  (await world.client.get(REGISTRY).catch(() => undefined))?.data?.settings ?? "";
const given = new Set<string>();
const others = new Set([RESERVED, OWNED, OF_A_NODE, OF_A_SERVICE, OF_A_MEMBER]);

/** The address of a new pod, which no other pod has had, and no Node. */
async function attach(node: string, of: Partial<objects.PodSpec> = BY_HAND): Promise<string> {
  const pod = await world.createPod({ name: `web-${pods++}`, node, ...of });
  const { addresses, refusal } = await world.node(node).runtime.attach(pod, { limitMs: 30_000 });
  const address = addresses.join() || refusal;
  expect(address).toMatch(/^10\.[67]\.0\./);
  expect([...others, ...given]).not.toContain(address);
  given.add(address);
  return address;
}

/** The answer to a tenant's definition that the settings forbid. */
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
  const agent = JSON.parse((await world.node("n1").agent.request("/v1/health")).body).problems;
  return [...agent, ...((await controller?.status().catch(() => undefined))?.problems ?? [])].join("; ");
}

/** The kind IPAllocation only goes by a word. */
async function remove(path: string): Promise<void> {
  firsts.set(path, await world.client.get(path).catch(() => undefined));
  if (firsts.get(path) === undefined) return;
  if (path === KIND) await world.client.patch(KIND, { metadata: { annotations: { [FORCE_DELETE]: "true" } } });
  await world.client.delete(path);
  await expect.poll(() => world.client.get(path).then(String, () => "gone"), PATIENCE).toBe("gone");
}

/** "refused": by the API server; "nothing": nothing is lost; else the words of the agent or the controller. */
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
  Coordinator, made by the chart over the controller's => nothing
  berth-registry, made by the chart over the controller's => berth-registry is missing or empty
  policy, deleted => berth-agent-creates is not in force
  record of a Node, deleted => nothing
  record of a Node, restored => nothing
  record of a Service, deleted => nothing
  Service, without status => nothing
  IPPool, emptied => refused
  IPPool, without status => nothing
  IPPool, malformed status => refused
  IPPool, restored => nothing
  record of a Service, restored => nothing
  record of a member, emptied => refused
  record of a member, restored => nothing
  Service, deleted and made again => nothing
  Service, restored => nothing
  reservation, without status => nothing
  reservation, emptied => refused
  reservation, restored => nothing
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
  // The log alone may tell of an object that the controller makes again at once.
  const logs = () => `${world.node("n1").agent.stderr()}\n${controller?.output()}`.split("\n");
  const from = new Set(logs());
  const isNew = (text: RegExp) => logs().some((line) => text.test(line) && !from.has(line));
  const missing = (): string =>
    `; ${isNew(/"key":"default".*is missing/) ? "default" : isNew(/y was missing or/) ? "berth-registry" : "nothing"} is missing or empty`;
  const refusal = await act(firsts.get(path)).then(
    () => "",
    (error: unknown) => String(error),
  );
  expect(refusal).toMatch(said === "refused" ? /40[0359]|422/ : /^$/);
  const isSilent = said === "refused" || said === "nothing";
  const isSaid = expect
    .poll(async () => (await problems()) + missing(), { timeout: 10_000, interval: 100, message: "what is said" })
    .toContain(isSilent ? "" : said);
  const [addresses, answer] = await Promise.all([Promise.all([attach("n1"), attach("n2")]), tenant(), isSaid]);
  const isClosed = answer.includes('"tenantDefinitions" of vendor-conf is closed');
  table.push([what, addresses.join(" "), isClosed ? "refused" : answer, said].join(" | "));
  expect(isClosed, answer).toBe(true);
  return { before, isRefused: refusal !== "" };
}

async function putBack(path: string, first: KubeObject): Promise<void> {
  await world.client.apply(path, copyOf(first));
  if (path === PATHS.Service) await replace(world.client, path, { status: first.status }, "/status");
  await expect.poll(settings, PATIENCE).toContain("closed");
  await expect.poll(problems, PATIENCE).not.toMatch(/missing|vendor-conf|not in force|Renewing/);
}

it.each(ofRun(CELLS, (_, at) => at < SHORT))("%s => %s", { timeout: 120_000 }, async (cell, said) => {
  const [what = "", verb = ""] = cell.split(", ");
  const path = PATHS[what] ?? "";
  const act = async (first: KubeObject) => {
    await VERBS[verb]?.(world.client, path, first);
    // An agent that has not met it may claim the address until the controller has made the record again.
    if (what.startsWith("record of a") && verb === "deleted") await vi.waitFor(() => world.client.get(path), PATIENCE);
  };
  const { before, isRefused } = await see(cell, path, act, said);
  if (what === "vendor-conf") {
    await world.node("n1").agent.kill("SIGKILL");
    await world.node("n1").agent.start();
    await attach("n1");
    expect(await tenant()).toContain("is closed");
  }
  if (!isRefused) await putBack(path, before);
});

it.each(["", "enableIPv6: maybe"])("vendor-conf, with the text '%s'", { timeout: 120_000 }, async (text) => {
  const act = () => replace(world.client, objects.SETTINGS, { data: { "conf.yml": text } });
  const { before } = await see(`vendor-conf, "${text}"`, objects.SETTINGS, act, "vendor-conf");
  await putBack(objects.SETTINGS, before);
});

const OWN_CELLS = rows`
  Subnet, deleted => nothing
  Subnet, deleted and made again => refused
  Subnet, emptied => refused
  Subnet, without status => nothing
  Subnet, malformed status => refused
  Subnet, restored => nothing
  Subnet, made anew past its finalizers => nothing
  IPPool in deletion, deleted => nothing
  IPPool in deletion, deleted and made again => refused
  IPPool in deletion, emptied => refused
  IPPool in deletion, without status => nothing
  IPPool in deletion, malformed status => refused
  IPPool in deletion, restored => nothing
  IPPool in deletion, made anew past its finalizers => nothing`;

const sliceOf = (at: number) => ({ subnet: `10.7.0.${16 * at}/28`, namespaceName: ["shop"] });

/** Pods of a workload with two replicas whose pool is of the Subnet. */
async function workload(subnet: string): Promise<Partial<objects.PodSpec>> {
  const { namespace: _, ...owner } = await objects.createWorkload(world.client, "ReplicaSet", `set-${pods++}`, {
    ...{ replicas: 2, subnet },
  });
  return { owner, annotations: { subnet: { ipv4: [subnet] } } };
}

it.each(ofRun(OWN_CELLS, (_, at) => at === 3))("%s => %s", { timeout: 120_000 }, async (cell, said) => {
  const [what = "", verb = ""] = cell.split(", ");
  const at = OWN_CELLS.findIndex(([each]) => each === cell);
  const [name, isSubnet] = [`own-${at}`, what === "Subnet"];
  const path = `${objects.BERTH}/${isSubnet ? "subnets" : "ippools"}/${name}`;
  await world.create(isSubnet ? "Subnet" : "IPPool", name, sliceOf(at));
  const named = (...ipv4: string[]) => ({ annotations: { ippool: { ipv4 } } });
  const one = isSubnet ? await workload(name) : named(name);
  const early = await attach("n1", one);
  await until("it is marked", async () => (await world.client.get(path)).metadata.finalizers?.length === 1);
  firsts.set(path, await world.client.get(path));
  const other = isSubnet ? await workload(name) : named(name);
  const starting = [early, await attach("n2", other)];
  if (!isSubnet) await world.client.delete(path);
  await see(cell, path, async (first) => VERBS[verb]?.(world.client, path, first), said);
  const next = isSubnet ? [one, other] : [named(name, "blue"), named(name, "blue")];
  starting.push(await attach("n2", next[0]), await attach("n1", next[1]));
  if (verb !== "deleted" && isSubnet && said !== "refused") starting.push(await attach("n1", await workload(name)));
  table.push(`  of its own | ${starting.join(" ")}`);
});

it("the kind is made anew while berth-registry is away: no address of a live pod is given", {
  timeout: 120_000,
}, async () => {
  await controller?.stop();
  const kind = copyOf(await world.client.get(KIND));
  await world.client.delete(REGISTRY);
  await expect.poll(problems).toContain("berth-registry");
  // An address without a pod is lost with its record.
  others.delete(OF_A_MEMBER);
  await followed.history.restoring(async () => {
    await remove(KIND);
    await world.client.create(objects.CRDS, { ...kind, metadata: { name: kind.metadata.name } });
  });
  // NICs of this lab cannot be probed: it waits.
  const [waiting] = await Promise.all([attach("n2"), lead()]);
  await until("the records are back", async () => (await world.allocations()).length >= given.size);
  table.push(`berth-registry deleted, kind made anew | ${waiting}`);
  for (let more = 0; more < 4; more++) await attach("n2");
});

/** Pods wait for these: the settings of this test are not the defaults. */
const UNUSABLE = /^(?:vendor-conf|kind)$/;
/** With agents and a controller that start for the first time, and pods that are there before the controller. */
const NEVER = rows`
  Coordinator => nothing
  vendor-conf => nothing
  berth-registry => berth-registry is missing or empty
  policy => berth-agent-creates is not in force
  binding => berth-agent-changes is not in force
  Secret => Renewing the certificates
  kind => ipallocations was answered with 404`;

itLong.each(NEVER)("%s, never there => %s", { timeout: 120_000 }, async (what, said) => {
  const path = PATHS[what] ?? "";
  await close();
  await open(path);
  // One that the chart makes has no status; where there is none, the controller makes one.
  if (path === COORDINATOR) await lead().then(() => vi.waitFor(() => world.client.get(path), PATIENCE));
  const starting = Promise.all([attach("n1"), attach("n2")]);
  starting.catch(() => {});
  if (path !== COORDINATOR) await lead();
  if (said !== "nothing") await expect.poll(problems, { timeout: 10_000, interval: 100 }).toContain(said);
  if (UNUSABLE.test(what)) await world.client.apply(path, copyOf(firsts.get(path)));
  const addresses = await starting;
  const answer = await tenant();
  table.push([`${what}, never there`, addresses.join(" "), answer, said].join(" | "));
  expect(answer).toContain("is closed");
});
