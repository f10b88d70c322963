/**
 * The ways of an agent with the addresses of pods and workloads, one smoke each, on a real API server with the
 * controller's parts: real kinds, UIDs, watches and rights. The rules are in test/unit/registry/transcripts,
 * test/unit/agent and test/unit/controller/owners.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startNotices } from "../../host/controller/notices/notice-controller.ts";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import {
  applyKinds,
  CLAIMS,
  INSTANCES,
  ipamClaim,
  MACHINES,
  SETS,
  statefulSet,
} from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { add, openAgents, QUICK } from "./workloads.ts";

const LISTED = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };
const LISTED_SETS = "/apis/apps.kruise.io/v1beta1/namespaces/shop/statefulsets";
const RESERVED = "/apis/ipam.vendor.io/v1/reservedips";
const RESERVED_IP = { apiVersion: "ipam.vendor.io/v1", kind: "ReservedIP" };
const NET1 = { ifName: "net1", network: "lan" };

let world: World;
let sweep: (() => Promise<void>) | undefined;

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  await applyKinds(world.client, [
    { group: "apps.kruise.io", version: "v1beta1", kind: "StatefulSet", plural: "statefulsets" },
  ]);
  await allowListedKind();
  await world.settings({ ...QUICK, retainByName: [LISTED] });
  sweep = await leadAddressOwners(world, { retainByName: [LISTED] });
  await world.lead({ notices: startNotices });
  const knows = () => world.agents().every(({ snapshot }) => snapshot.vendorConf.retainByName.length === 1);
  await until("the agents know the kind", knows);
}, 120_000);

afterEach(async () => {
  for (const collection of [SETS, LISTED_SETS, MACHINES, INSTANCES, CLAIMS]) await world.client.delete(collection);
  await world.clear();
});

afterAll(() => world?.stop());

/** As the chart does for a kind that `retainByName` lists. */
async function allowListedKind(): Promise<void> {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const api = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "by-name" } };
  const rules = [{ apiGroups: ["apps.kruise.io"], resources: ["statefulsets"], verbs: ["get", "list", "watch"] }];
  await world.client.create(`${rbac}/clusterroles`, { ...api, kind: "ClusterRole", rules });
  await world.client.create(`${rbac}/clusterrolebindings`, {
    ...{ ...api, kind: "ClusterRoleBinding" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "by-name" },
    subjects: ["berth-agent", "berth-controller"].map((name) => ({
      ...{ kind: "ServiceAccount", name, namespace: "kube-system" },
    })),
  });
}

const untilStates = (...wanted: readonly string[]): Promise<void> => world.untilStates(wanted, sweep);

const createSet = async (replicas: number): Promise<string> =>
  (await world.client.create(SETS, statefulSet("web", replicas))).metadata.uid;

const ownerOf = (uid: string) => ({ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid });

const member = (ordinal: number, node: string, uid: string): Promise<lab.LabPod> =>
  world.createPod({ name: `web-${ordinal}`, node, owner: ownerOf(uid) });

async function only(pod: lab.LabPod, call: Parameters<typeof add>[2] = {}): Promise<string> {
  const [ip = ""] = await add(world, pod, call);
  return ip;
}

async function reserve(ip: string, name: string): Promise<void> {
  const spec = { ips: [ip], owner: { namespace: "shop", name } };
  await world.client.create(RESERVED, { ...RESERVED_IP, metadata: { name: ip }, spec });
  const isKnown = (node: string): boolean => world.agent(node).snapshot.reserved.some((each) => each.name === ip);
  await until("the agents know the reservation", () => ["n1", "n2"].every(isKnown));
}

describe("retention: a pod", () => {
  it("of a StatefulSet keeps its address on another node, until the set is smaller, or gone", async () => {
    const uid = await createSet(2);
    const [first, second] = [await member(0, "n1", uid), await member(1, "n1", uid)];
    const [ip, ip1] = [await only(first), await only(second)];
    for (const pod of [first, second]) await world.endPod(pod);
    await untilStates(`${ip} Kept n1`, `${ip1} Kept n1`);
    const again = await member(0, "n2", uid);
    expect(await only(again)).toBe(ip);
    await world.client.patch(`${SETS}/web`, { spec: { replicas: 1 } });
    await untilStates(`${ip} Bound n2 web-0@n2`);
    await world.endPod(again);
    await untilStates(`${ip} Kept n2`);
    await world.client.delete(`${SETS}/web`);
    await untilStates();
  });

  it("of a kind that is listed keeps it by its name if it asks for that, until its owner is gone", async () => {
    const owner = { ...LISTED, name: "web" };
    const { uid } = (await world.client.create(LISTED_SETS, { ...LISTED, metadata: { name: "web" }, spec: {} }))
      .metadata;
    const annotations = { retain: "by-name" };
    const first = await world.createPod({ name: "web-0", node: "n1", owner: { ...owner, uid }, annotations });
    const ip = await only(first);
    await world.endPod(first);
    await untilStates(`${ip} Kept n1`);
    const again = await world.createPod({ name: "web-0", node: "n2", owner: { ...owner, uid }, annotations });
    expect(await only(again)).toBe(ip);
    await world.endPod(again);
    await world.client.delete(`${LISTED_SETS}/web`);
    await untilStates();
  });

  it("gets the addresses reserved for its name, and no other pod does; its former ones are released", async () => {
    const uid = await createSet(1);
    const first = await member(0, "n1", uid);
    const before = await only(first);
    await world.endPod(first);
    await untilStates(`${before} Kept n1`);
    await reserve("10.6.0.50", "web-0");
    const thief = await world.createPod({ name: "thief", node: "n2", annotations: { ips: [{ ipv4: "10.6.0.50" }] } });
    const text = 'pool "blue" may not hand out 10.6.0.50: ReservedIP "10.6.0.50" has it';
    await expect(add(world, thief)).rejects.toMatchObject({ code: 100, message: expect.stringContaining(text) });
    expect(await only(await member(0, "n2", uid))).toBe("10.6.0.50");
    await untilStates("10.6.0.50 Bound n2 web-0@n2");
    await world.client.delete(`${RESERVED}/10.6.0.50`);
  });

  it("with an IPAMClaim keeps it for the claim, whose status says so, also when it is reserved for another", async () => {
    const podOf = (name: string, node: string, reference: string) => {
      const networks = [{ name: "lan", interface: "net1", "ipam-claim-reference": reference }];
      return world.createPod({ name, node, annotations: { "k8s.v1.cni.cncf.io/networks": networks } });
    };
    await world.client.create(CLAIMS, ipamClaim("web.net1", { network: "lan", interface: "net1" }));
    const first = await podOf("a", "n1", "web.net1");
    const ip = await only(first, NET1);
    const status = async (name: string) => (await world.client.get(`${CLAIMS}/${name}`)).status;
    await expect.poll(() => status("web.net1"), { timeout: 30_000 }).toEqual({ ips: [`${ip}/24`], ownerPod: "a" });
    await world.endPod(first);
    await untilStates(`${ip} Kept n1`);
    const second = await podOf("b", "n2", "web.net1");
    expect(await only(second, NET1)).toBe(ip);
    await expect.poll(() => status("web.net1"), { timeout: 30_000 }).toMatchObject({ ownerPod: "b" });
    await world.endPod(second);
    await reserve(ip, "other");
    expect(await only(await podOf("c", "n2", "web.net1"), NET1)).toBe(ip);
    await world.client.delete(`${RESERVED}/${ip}`);
  });
});

it("retention: a set that is created again around its pod keeps the address while the agent of its node is away: the controller follows, then the agent", async () => {
  const pod = await member(0, "n1", await createSet(2));
  const ip = await only(pod);
  await world.agent("n1").stop();
  await world.client.delete(`${SETS}/web`);
  const uid = await createSet(2);
  await world.client.patch(lab.podPath(pod), {
    metadata: { ownerReferences: [{ ...ownerOf(uid), controller: true }] },
  });
  await until("the address is the new set's", async () => {
    await sweep?.();
    return (await world.spec(ip))?.workload?.uid === uid;
  });
  await world.agent("n1").start();
  await world.endPod(pod);
  await untilStates(`${ip} Kept n1`);
  expect((await world.spec(ip))?.workload?.uid).toBe(uid);
  expect(await only(await member(0, "n2", uid))).toBe(ip);
});

it("node-lost: of a node that is out of service a pod has its address elsewhere at once, and the node that is back lets go", async () => {
  const uid = await createSet(1);
  const before = await member(0, "n1", uid);
  const ip = await only(before);
  await world.agent("n1").stop();
  await lab.deletePod(world.client, before);
  const after = await member(0, "n2", uid);
  await expect(add(world, after)).rejects.toMatchObject({
    code: 11,
    message: expect.stringContaining(
      `Address ${ip} is retained for StatefulSet "shop/web", and its earlier pod shop/web-0, which is deleted, still has it on node "n1"`,
    ),
  });
  await world.client.patch(`${lab.NODES}/n1`, { spec: { taints: [lab.OUT_OF_SERVICE] } });
  expect(await only(after)).toBe(ip);
  await world.client.patch(`${lab.NODES}/n1`, { spec: { taints: [] } });
  await world.agent("n1").start();
  await world.agent("n1").cluster.collector.sweep();
  await until("the node that is back has no row", async () => {
    await world.agent("n1").registry.expire();
    return (await world.agent("n1").registry.list(undefined, 9)).length === 0;
  });
  await untilStates(`${ip} Bound n2 web-0@n2`);
});
