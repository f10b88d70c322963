/**
 * What the chart, the controller or an administrator wrote is deleted, emptied or replaced while pods start (rule
 * known-stays): what it said last stays in force, also after a restart of the agent, and health says so.
 */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startEpoch } from "../../host/controller/epoch/epoch-controller.ts";
import * as objects from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runPlugin } from "../lab/cnitool.ts";

const REGISTRY = `${objects.NAMESPACES}/${objects.SYSTEM}/configmaps/berth-registry`;
const COORDINATOR = `${objects.COORDINATORS}/default`;
const KIND = `${objects.CRDS}/ipallocations.ipam.vendor.io`;
/** A Node has the pool's first address. */
const OCCUPIED = { nodes: ["10.6.0.1"], apiServer: [], services: [] };
const SAID = { enableIPv6: false, tenantDefinitions: "closed" };
/** Takes a table of the node. */
const TENANT = { type: "coordinator", hostRuleTable: 700 };

let world: World;
let pods = 0;
const table: string[] = [];

beforeAll(async () => {
  const pool = { name: "blue", subnet: "10.6.0.0/24", selection: "ascending" };
  world = await startWorld({ nodes: ["n1", "n2"], pools: [pool as never], settings: SAID });
  await world.lead({ epoch: startEpoch });
  await objects.applyDefinition(world.client, "shop", "evil", { cniVersion: "1.0.0", name: "evil", plugins: [TENANT] });
  await world.client.apply(COORDINATOR, objects.berthObject("Coordinator", "default", {}));
  await world.client.patch(`${COORDINATOR}/status`, { status: { occupied: OCCUPIED } });
  await vi.waitFor(async () => expect(await kept()).toContain("closed"), { timeout: 20_000 });
}, 120_000);
afterAll(async () => {
  console.log(["object, verb | a new pod | a tenant's table | said by health", ...table].join("\n"));
  await world?.stop();
});

const kept = async (): Promise<string> => String((await world.client.get(REGISTRY)).data?.settings);

const given = new Set<string>();

/** The address of a new pod of node n1 that names IPv4 alone. */
async function attach(node = "n1"): Promise<string> {
  return add(await create(node));
}

function create(node: string): Promise<objects.LabPod> {
  const annotations = { "ipam.vendor.io/ippool": '{"ipv4":["blue"]}' };
  return world.createPod({ name: `web-${pods++}`, node, annotations });
}

async function add(pod: objects.LabPod): Promise<string> {
  const { addresses, refusal } = await world.node(pod.node).runtime.attach(pod, { limitMs: 30_000 });
  return addresses.join() || refusal;
}

/** What a tenant's definition is answered that the settings forbid. */
async function tenant(): Promise<string> {
  const networks = { "k8s.v1.cni.cncf.io/networks": "shop/evil" };
  const { name, uid } = await world.createPod({ name: `evil-${pods++}`, node: "n1", annotations: networks });
  const { agent, netnsPath: netns, runtime } = world.node("n1");
  const { stdout } = await runPlugin({
    ...{ plugin: "coordinator", command: "ADD", ifName: "net1", containerId: runtime.newContainerId(), netns },
    args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=${uid}`,
    stdin: {
      ...TENANT,
      cniVersion: "1.0.0",
      name: "evil",
      prevResult: { cniVersion: "1.0.0", interfaces: [], ips: [] },
    },
    env: agent.env,
  });
  return `${stdout?.code}: ${stdout?.msg}`;
}

const problems = async (): Promise<string> => (await world.node("n1").agent.get("/v1/health")).problems.join("; ");

/** Another may write it meanwhile. */
const replace = (path: string, change: object): Promise<void> =>
  vi.waitFor(async () => {
    const { status: _, ...object } = await world.client.get(path);
    await world.client.put(path, { ...object, ...change });
  });

const remake = async (path: string): Promise<void> => {
  const { metadata, ...object } = await world.client.get(path);
  await world.client.delete(path);
  const { name, namespace, labels } = metadata;
  await world.client.create(path.slice(0, path.lastIndexOf("/")), { ...object, metadata: { name, namespace, labels } });
};

const text = (conf: string) => ({ data: { "conf.yml": conf } });

it.each<[what: string, act: () => Promise<unknown>, said: string]>([
  ["vendor-conf, deleted", () => world.client.delete(objects.SETTINGS), "vendor-conf is missing"],
  ["vendor-conf, emptied", () => replace(objects.SETTINGS, text("")), "vendor-conf"],
  ["vendor-conf, without data", () => replace(objects.SETTINGS, { data: undefined }), "vendor-conf"],
  ["vendor-conf, malformed", () => replace(objects.SETTINGS, text("enableIPv6: maybe")), "vendor-conf"],
  ["vendor-conf, deleted and made again", () => remake(objects.SETTINGS), ""],
  ["berth-registry, deleted", () => world.client.delete(REGISTRY), "berth-registry is missing or empty"],
  ["berth-registry, emptied", () => replace(REGISTRY, { data: undefined }), "berth-registry is missing or empty"],
  ["berth-registry, deleted and made again", () => remake(REGISTRY), ""],
  ["Coordinator, deleted", () => world.client.delete(COORDINATOR), "default is missing"],
  ["Coordinator, without status", () => replace(`${COORDINATOR}/status`, {}), ""],
])("%s", { timeout: 120_000 }, async (what, act, said) => {
  await act();
  const isSaid = expect.poll(problems, { timeout: 10_000, interval: 100, message: "health" }).toContain(said);
  const [address, answer] = await Promise.all([attach(), tenant(), isSaid]);
  table.push([what, address, answer.slice(0, 60), said].join(" | "));
  expect(address).toMatch(/^10\.6\.0\./);
  expect([OCCUPIED.nodes[0], ...given]).not.toContain(address);
  given.add(address);
  expect(answer).toContain('"tenantDefinitions" of vendor-conf is closed');
  if (what.startsWith("vendor-conf")) {
    await world.node("n1").agent.kill("SIGKILL");
    await world.node("n1").agent.start();
    const again = await attach();
    expect(again).toMatch(/^10\.6\.0\./);
    given.add(again);
    expect(await tenant()).toContain("is closed");
  }
  // As it was.
  await world.client.apply(objects.SETTINGS, objects.settingsObject({ ...SAID, allocationCooldown: "1s" }));
  await world.client.apply(COORDINATOR, objects.berthObject("Coordinator", "default", {}));
  await world.client.patch(`${COORDINATOR}/status`, { status: { occupied: OCCUPIED } });
  const epoch = async () => (await world.client.get(REGISTRY).catch(() => undefined))?.data?.epoch ?? "";
  await expect.poll(epoch, { timeout: 20_000 }).not.toBe("");
  await expect.poll(problems, { timeout: 20_000, message: "all is well again" }).not.toMatch(/missing|vendor-conf/);
});

it("the kind is made anew while berth-registry is away: no address of a live pod is given", {
  timeout: 120_000,
}, async () => {
  await world.depose();
  const { metadata, status: _, ...kind } = await world.client.get(KIND);
  await world.client.delete(REGISTRY);
  await expect.poll(problems).toContain("berth-registry");
  await world.client.patch(KIND, { metadata: { annotations: { "ipam.vendor.io/force-delete": "true" } } });
  await world.client.delete(KIND);
  await expect.poll(() => world.client.get(KIND).then(String, () => "gone"), { timeout: 20_000 }).toBe("gone");
  await world.client.create(objects.CRDS, { ...kind, metadata: { name: metadata.name } });
  // NICs of this lab cannot be probed: it waits.
  const [waiting] = await Promise.all([attach("n2"), world.lead({ epoch: startEpoch })]);
  table.push(`berth-registry deleted, kind made anew | ${waiting}`);
  for (let more = 0; more < 4; more++) {
    const address = await attach("n2");
    expect(address).toMatch(/^10\.6\.0\./);
    expect([...given]).not.toContain(address);
    given.add(address);
  }
});

it("etcd is restored with raised versions, and the controller is another one: what was given since is nobody else's", {
  timeout: 120_000,
}, async () => {
  const late = [await create("n1"), await create("n1")];
  const copy = await world.plane.snapshot();
  for (const pod of late) given.add(await add(pod));
  await world.depose();
  await world.plane.restore(copy, 2_000);
  const startMs = performance.now();
  await world.lead({ epoch: startEpoch });
  for (let more = 0; more < 4; more++) {
    const address = await attach("n2");
    expect(address).toMatch(/^10\.6\.0\./);
    expect([...given]).not.toContain(address);
    given.add(address);
    if (more === 0)
      table.push(`etcd restored, versions raised | ${address} after ${Math.round(performance.now() - startMs)} ms`);
  }
});
