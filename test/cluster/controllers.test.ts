/**
 * One smoke for each part of the controller that writes for administrators, on a real API server with the controller's
 * account; all of them lead at once. Their decisions are in test/unit/controller.
 */
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { IN_USE_FINALIZER } from "../../host/controller/finalizers/plan-finalizers.ts";
import { startNetworks } from "../../host/controller/networks/networks-controller.ts";
import { startShares } from "../../host/controller/usage/full-namespaces.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import type { IpAllocationSpec } from "../../host/resources/ip-allocation.ts";
import { decodeIpPoolUsage } from "../../host/resources/ip-pool-usage.ts";
import type { Condition } from "../../host/resources/status.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { ALLOCATIONS, COORDINATORS, createPod, NAMESPACES, POOLS, SYSTEM } from "../lab/cluster/objects.ts";
import { applyKinds } from "../lab/cluster/workload-kinds.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs";
const PARTS = {
  networks: startNetworks,
  usage: startUsage,
  shares: startShares,
  conditions: startConditions,
  finalizers: startFinalizers,
};

let world: World;
const events: KubeEvent[] = [];

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  await world.namespace("shop");
});
afterEach(() => world.depose());
afterAll(async () => {
  await world?.clear();
  await world?.stop();
});

async function lead(): Promise<LabController> {
  events.splice(0);
  return world.lead(PARTS, { events });
}

async function conditionOf(plural: string, name: string, type: string): Promise<Condition | undefined> {
  const conditions: Condition[] = (await world.read(plural, name))?.status?.conditions ?? [];
  return conditions.find((each) => each.type === type);
}

const has = (plural: string, name: string, type: string, status: string) => async () =>
  (await conditionOf(plural, name, type))?.status === status;

const eventsOf = (name: string) => events.flatMap(({ regarding, reason }) => (regarding.name === name ? [reason] : []));

it("a pool gets its finalizer, conditions and counts beside an agent's mark, and goes with its last address", async () => {
  const uid = await world.pool("green", { subnet: "10.21.0.0/24" }, { finalizers: ["other.example/one"] });
  await world.allocate("10.21.0.99", { pool: "green" });
  await lead();
  const marks = Array.from({ length: 20 }, (_, at) => `2026-11-20T04:00:${String(at).padStart(2, "0")}Z`);
  for (const wanted of marks) await world.client.patch(`${POOLS}/green/status`, { status: { wanted } });
  await until("all is written", async () => {
    const { metadata, status } = await world.read("ippools", "green");
    return metadata.finalizers.length === 2 && status.used === 1 && status.conditions?.length === 1;
  });
  const { metadata, status } = await world.read("ippools", "green");
  expect(metadata).toMatchObject({ finalizers: ["other.example/one", IN_USE_FINALIZER], generation: 1 });
  expect(status).toMatchObject({ wanted: marks.at(-1), total: 254, conditions: [{ type: "Ready", status: "True" }] });
  await until("its usage is written", async () => (await world.read("ippoolusages", "green"))?.status.bound === 1);
  const usage = await world.read("ippoolusages", "green");
  expect(usage.metadata.ownerReferences).toMatchObject([{ kind: "IPPool", name: "green", uid, controller: true }]);
  expect(decodeIpPoolUsage(usage, "test")).toMatchObject({ poolUid: uid, usage: { total: 254, free: 253, bound: 1 } });

  await world.client.patch(`${POOLS}/green`, { spec: { ips: ["10.21.0.1-10.21.0.9"] } });
  await until("the shrink is reported", has("ippools", "green", "InUseOutsideRange", "True"));
  expect(await conditionOf("ippools", "green", "InUseOutsideRange")).toMatchObject({
    ...{ observedGeneration: 2, message: expect.stringContaining("10.21.0.99 (pod shop/web-0)") },
  });
  expect(eventsOf("green")).toEqual(["InUseOutsideRange"]);

  await world.client.patch(`${POOLS}/green`, { metadata: { finalizers: [IN_USE_FINALIZER] } });
  await world.client.delete(`${POOLS}/green`);
  await until("its holders are named", has("ippools", "green", "DeletedWithHolders", "True"));
  await world.release("10.21.0.99");
  await until("it is gone", async () => (await world.read("ippools", "green")) === undefined);
  await until("and so is its usage", async () => (await world.read("ippoolusages", "green")) === undefined);
});

it("an admission webhook that fails for one pool keeps no other waiting, and the pool's event says so", async () => {
  const webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const webhook = {
    ...{ name: "broken.example.org", sideEffects: "None", admissionReviewVersions: ["v1"] },
    clientConfig: { url: "https://127.0.0.1:9/" },
    rules: [{ apiGroups: ["*"], apiVersions: ["*"], resources: ["ippools", "ippools/status"], operations: ["UPDATE"] }],
    matchConditions: [{ name: "one", expression: 'object.metadata.name == "bad"' }],
  };
  await world.pool("bad", { subnet: "10.24.0.0/24" });
  await world.client.create(webhooks, { metadata: { name: "broken" }, webhooks: [webhook] });
  onTestFinished(() => world.client.delete(`${webhooks}/broken`));
  const change = () => world.client.patch(`${POOLS}/bad`, { metadata: { labels: { x: "y" } } });
  await expect.poll(() => change().catch(String), { timeout: 10_000 }).toContain("broken.example.org");
  await lead();
  await until("the refusal is told", () => eventsOf("bad").includes("Refused"));
  await world.pool("fine", { subnet: "10.25.0.0/24" });
  const isDone = async () => {
    const { metadata, status } = await world.read("ippools", "fine");
    const usage = await world.read("ippoolusages", "fine");
    return metadata.finalizers?.length === 1 && status?.total === 254 && status.conditions?.length === 1 && usage;
  };
  await until("the other has all", isDone, 10_000);
});

it("a pool in deletion stays while a list names an allocation that the cache does not know", async () => {
  await world.pool("pink", { subnet: "10.23.0.0/24" });
  const { api, caches } = await lead();
  await until("it is marked", async () => (await world.read("ippools", "pink")).metadata.finalizers?.length === 1);
  // An agent that has not received the deletion claims while the controller decides.
  let claims = 0;
  api.before = async ({ path, query }) => {
    if (path.endsWith("/ipallocations") && query?.fieldSelector === "spec.pool=pink" && claims++ === 0)
      await world.allocate("10.23.0.9", { pool: "pink" });
  };
  await world.client.delete(`${POOLS}/pink`);
  await until("the claim is there", () => claims > 0 && caches.allocations.items.has("10.23.0.9"));
  await until("its holders are named", has("ippools", "pink", "DeletedWithHolders", "True"));
  await world.release("10.23.0.9");
  await until("it is gone", async () => (await world.read("ippools", "pink")) === undefined);
});

it("the next controller writes only differences, and repeats no event", async () => {
  await world.pool("first", { subnet: "10.40.1.0/24" });
  await world.pool("second", { subnet: "10.40.2.0/24", ips: ["10.40.2.9-10.40.2.1"] });
  await lead();
  await until("both are checked, and one counted", async () => {
    const [one, other] = [await world.read("ippools", "first"), await world.read("ippools", "second")];
    const isMarked = [one, other].every(({ metadata }) => metadata.finalizers !== undefined);
    const isChecked = one.status?.conditions?.length === 1 && other.status?.conditions?.length === 2;
    return isMarked && isChecked && one.status.total !== undefined && eventsOf("second").length === 1;
  });
  await until("its usage is there", async () => (await world.read("ippoolusages", "first")) !== undefined);
  await until(
    "a Coordinator is there",
    async () => (await world.read("coordinators", "default"))?.status !== undefined,
  );
  await world.depose();
  await world.allocate("10.40.1.9", { pool: "first" });
  const { api } = await lead();
  await until("the difference is counted", async () => (await world.read("ippools", "first")).status.used === 1);
  await until("and its usage", async () => (await world.read("ippoolusages", "first")).status.bound === 1);
  const writes = api.calls.filter((call) => !call.startsWith("GET"));
  expect([writes.sort(), events]).toEqual([["PATCH ippools/first/status", "PUT ippoolusages/first"], []]);
  await world.release("10.40.1.9");
});

it("the Coordinator is made, and follows the cluster's networks, also of a kind that is installed later, in any version", async () => {
  await world.client.delete(`${COORDINATORS}/default`).catch(() => {});
  const { client } = world;
  const services: string[] = (await client.get(SERVICE_CIDRS)).items.flatMap(({ spec }: KubeObject) => spec.cidrs);
  expect(services).toHaveLength(2);
  const kubeadm = { ClusterConfiguration: "networking: {podSubnet: '10.244.0.0/16,fd00:10:244::/56'}" };
  await client.apply(`${NAMESPACES}/${SYSTEM}/configmaps/kubeadm-config`, {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "kubeadm-config" }, data: kubeadm },
  });
  await lead();
  const expectStatus = (wanted: object): Promise<void> =>
    expect
      .poll(async () => (await world.read("coordinators", "default"))?.status, { timeout: 30_000 })
      .toMatchObject({ phase: "Synced", ...wanted });
  const kubeadms = { overlayPodCIDR: ["10.244.0.0/16", "fd00:10:244::/56"] };
  await expectStatus({ ...kubeadms, serviceCIDR: services });
  expect((await world.read("coordinators", "default")).spec).toEqual({ podCIDRType: "auto" });
  const [v4 = "", v6 = ""] = services;
  const cidr = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", spec: { cidrs: ["172.31.0.0/24"] } };
  await client.apply(`${SERVICE_CIDRS}/more`, { ...cidr, metadata: { name: "more" } });
  await expectStatus({ serviceCIDR: [v4, "172.31.0.0/24", v6] });
  await client.delete(`${SERVICE_CIDRS}/more`);
  const group = "crd.projectcalico.org";
  for (const version of ["v1", "v2beta1"]) {
    await applyKinds(client, [{ group, version, plural: "ippools", kind: "IPPool", scope: "Cluster" }]);
    await client.create(`/apis/${group}/${version}/ippools`, {
      ...{ apiVersion: `${group}/${version}`, kind: "IPPool", metadata: { name: "calico" } },
      spec: { cidr: "192.168.0.0/16" },
    });
    await expectStatus({ overlayPodCIDR: ["192.168.0.0/16"] });
    await client.delete(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ippools.${group}`);
    await expectStatus(kubeadms);
  }
});

it("a pool says which of its addresses another allocator may give to Services, in any version, until they are excluded", async () => {
  await lead();
  await world.pool("lb", { subnet: "10.38.0.0/24", ips: ["10.38.0.10-10.38.0.99"] });
  const [group, version, plural] = ["cilium.io", "v2alpha1", "ciliumloadbalancerippools"];
  const kind = "CiliumLoadBalancerIPPool";
  await applyKinds(world.client, [{ group, version, plural, kind, scope: "Cluster" }]);
  const object = { apiVersion: `${group}/${version}`, kind, metadata: { name: "lan" } };
  await world.client.create(`/apis/${group}/${version}/${plural}`, { ...object, spec: { blocks: [{ cidr: "10.38.0.0/28" }] } }); // biome-ignore format: one call
  const condition = () => conditionOf("ippools", "lb", "OverlapsOthers");
  const message =
    "6 addresses, from 10.38.0.10 on, are also in CiliumLoadBalancerIPPool lan; exclude them here or there";
  await expect.poll(condition, { timeout: 60_000 }).toMatchObject({ status: "True", message });
  await world.client.patch(`${POOLS}/lb`, { spec: { excludeIPs: ["10.38.0.10-10.38.0.15"] } });
  await expect.poll(condition, { timeout: 30_000 }).toMatchObject({ status: "False", reason: "NoOthers" });
  await world.client.delete(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.${group}`);
});

it("the Coordinator lists namespaces at their limit of addresses, beside its other status", async () => {
  await world.settings({ maxAddressesPerNamespace: 2 });
  await world.pool("share", { subnet: "10.39.0.0/24" });
  const allocate = (last: number, namespace: string, changes: Partial<IpAllocationSpec> = {}) => {
    const holder = { namespace, pod: "web-0", podUid: `u-${last}`, ifName: "eth0", node: "n1" };
    const quarantine = changes.state && { quarantine: { reason: "Conflict" as const, mac: "", parent: "", holder } };
    return world.allocate(`10.39.0.${last}`, { pool: "share", holders: [holder], ...changes, ...quarantine });
  };
  for (const namespace of ["tenant", "crowd"]) {
    await world.namespace(namespace);
    await createPod(world.client, { namespace, name: "web-0", node: "n1" });
  }
  await allocate(1, "tenant");
  for (const last of [5, 6]) await allocate(last, "crowd");
  // Their pod does not exist: a node's token alone has written them.
  for (const last of [10, 11]) await allocate(last, "victim");
  for (const last of [12, 13]) await allocate(last, "quarantined", { state: "Quarantined", holders: [] });
  await lead();
  const full = async () => (await world.read("coordinators", "default"))?.status?.fullNamespaces ?? [];
  await expect.poll(full, { timeout: 30_000 }).toEqual([{ name: "crowd", addresses: 2 }]);
  await allocate(2, "tenant");
  await expect.poll(full, { timeout: 30_000 }).toHaveLength(2);
  expect((await world.read("coordinators", "default")).status.phase).toBe("Synced");
  // An address that the absent one loses is no room for another, which is not listed yet.
  await world.namespace("victim");
  await createPod(world.client, { namespace: "victim", name: "web-1", node: "n1" });
  const late = { namespace: "victim", pod: "web-1", podUid: "u-late", ifName: "eth0", node: "n1" };
  for (const last of [10, 11]) {
    await allocate(last + 10, "victim", { holders: [late] });
    await world.client.patch(`${ALLOCATIONS}/10.39.0.${last}`, { spec: { state: "Cooling", holders: [] } });
  }
  await expect.poll(full, { timeout: 30_000 }).toHaveLength(3);
  await world.client.patch(`${ALLOCATIONS}/10.39.0.2`, { spec: { state: "Cooling", holders: [] } });
  await expect.poll(full, { timeout: 30_000 }).toHaveLength(2);
  await world.settings({});
  await expect.poll(full, { timeout: 30_000 }).toEqual([]);
});
