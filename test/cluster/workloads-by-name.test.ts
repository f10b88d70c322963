/**
 * Pods of a kind that vendor-conf lists keep their addresses by name if they ask for it, with the rights that the chart
 * gives for such a kind (docs/workloads.md, further kinds).
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import { applyKinds } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { add, openAgents, QUICK } from "./workloads.ts";

const LISTED = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" };
const SETS = "/apis/apps.kruise.io/v1beta1/namespaces/shop/statefulsets";
const RETAIN = { retain: "by-name" };

let world: World;
let sweep: (() => Promise<void>) | undefined;
let uid = "";

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  await applyKinds(world.client, [
    { group: "apps.kruise.io", version: "v1beta1", kind: "StatefulSet", plural: "statefulsets" },
  ]);
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const api = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "by-name" } };
  const rules = [{ apiGroups: ["apps.kruise.io"], resources: ["statefulsets"], verbs: ["get", "list", "watch"] }];
  await world.client.create(`${rbac}/clusterroles`, { ...api, kind: "ClusterRole", rules });
  const accounts = ["berth-agent", "berth-controller"];
  await world.client.create(`${rbac}/clusterrolebindings`, {
    ...{ ...api, kind: "ClusterRoleBinding" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "by-name" },
    subjects: accounts.map((name) => ({ kind: "ServiceAccount", name, namespace: "kube-system" })),
  });
  await world.settings({ ...QUICK, retainByName: [LISTED] });
  sweep = await leadAddressOwners(world, { retainByName: [LISTED] });
  await until("the agents know the kind", () =>
    world.agents().every(({ snapshot }) => snapshot.vendorConf.retainByName.length === 1),
  );
}, 120_000);
afterEach(async () => {
  await world.client.delete(`${SETS}/web`).catch(() => {});
  await world.clear();
});
afterAll(() => world?.stop());

async function set(): Promise<void> {
  uid = (await world.client.create(SETS, { ...LISTED, metadata: { name: "web" }, spec: {} })).metadata.uid;
}

function pod(name: string, node: string, annotations: object = RETAIN): Promise<lab.LabPod> {
  return world.createPod({ name, node, owner: { ...LISTED, name: "web", uid }, annotations: { ...annotations } });
}

async function only(of: lab.LabPod): Promise<string> {
  const [ip = ""] = await add(world, of);
  return ip;
}

it("retention: a pod keeps its address by name, over a restart and on another node, until its owner is gone", async () => {
  await set();
  const [first, plain] = [await pod("web-0", "n1"), await pod("web-1", "n1", {})];
  const [ip] = [await only(first), await only(plain)];
  await world.endPod(plain);
  await world.endPod(first);
  await world.untilStates([`${ip} Kept n1`], sweep);
  const [retained] = await world.allocations();
  expect(retained?.spec.workload).toEqual({
    ...{ kind: "StatefulSet.apps.kruise.io", namespace: "shop", name: "web", uid, member: "web-0", interface: "eth0" },
  });
  const again = await pod("web-0", "n2");
  expect(await only(again)).toBe(ip);
  const other = await pod("web-7", "n2");
  expect(await only(other)).not.toBe(ip);
  for (const each of [again, other]) await world.endPod(each);
});

it("retention: what is retained is released with the owner, and a forged one retains nothing", async () => {
  await set();
  const first = await pod("web-0", "n1");
  const ip = await only(first);
  await world.endPod(first);
  await world.untilStates([`${ip} Kept n1`], sweep);
  await world.client.delete(`${SETS}/web`);
  await world.untilStates([], sweep);
  uid = crypto.randomUUID();
  const forged = await pod("web-0", "n1");
  await only(forged);
  await world.endPod(forged);
  await world.untilStates([], sweep);
});

it("retention: a set that is created again around its running pods keeps their addresses", async () => {
  await set();
  const first = await pod("web-0", "n1");
  const ip = await only(first);
  await world.client.patch(lab.podPath(first), { metadata: { ownerReferences: null } });
  await world.client.delete(`${SETS}/web`);
  await set();
  const owner = { ...LISTED, name: "web", uid, controller: true };
  await world.client.patch(lab.podPath(first), { metadata: { ownerReferences: [owner] } });
  await expect.poll(async () => (await world.spec(ip))?.workload?.uid, { timeout: 20_000 }).toBe(uid);
  await world.endPod(first);
  await world.untilStates([`${ip} Kept n1`], sweep);
  expect(await only(await pod("web-0", "n2"))).toBe(ip);
});

it("a pod whose name does not come again is refused with the reason, and one of a kind that is not listed", async () => {
  await set();
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-5d", uid: crypto.randomUUID() };
  const generated = await world.createPod({ name: "web-5d-x", node: "n1", owner, annotations: RETAIN });
  await expect(add(world, generated)).rejects.toMatchObject({
    source: 'annotation "ipam.vendor.io/retain"',
    message: expect.stringContaining("have generated names, which never come again; for a Deployment"),
  });
  await world.deletePod(generated);
  const things = { apiVersion: "made.up/v1", kind: "Thing", name: "web", uid: crypto.randomUUID() };
  const unlisted = await world.createPod({ name: "web-0", node: "n1", owner: things, annotations: RETAIN });
  await expect(add(world, unlisted)).rejects.toMatchObject({
    source: 'annotation "ipam.vendor.io/retain"',
    message: expect.stringContaining('"retainByName" of vendor-conf does not list Thing of made.up/v1'),
  });
  await world.deletePod(unlisted);
});
