/**
 * MetalLB's kinds, as its module has them, on a real API server: the built controller, with the rights of the chart, is
 * stopped and killed between its steps. Its speakers: test/long.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ALLOCATIONS, NAMESPACES, POOLS } from "../../../../test/lab/cluster/objects.ts";
import { applyPeerKinds, METALLB } from "../../../../test/lab/cluster/peer-kinds.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../../../../test/lab/kube-client.ts";
import { CLASS } from "../../service.ts";
import { grantMetallb, METALLB_NAMESPACE, METALLB_PATH, metallbObjects, withoutStatus } from "../lab/metallb.ts";

const SERVICES = `${NAMESPACES}/shop/services`;
const PATIENCE = { timeout: 60_000 };
let world: World;
let client: KubeClient;

beforeAll(async () => {
  const settings = { enableIPv6: true, allocationCooldown: "1s", garbageCollection: { interval: "10s", grace: "1s" } };
  world = await startWorld({ nodes: ["n1"], namespaces: ["shop", METALLB_NAMESPACE], settings });
  ({ client } = world);
  await world.pool("blue", { subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.99"], default: true });
  await world.pool("blue6", { subnet: "fd06::/64", ips: ["fd06::1-fd06::9"], default: true });
  await start();
}, 120_000);
afterAll(() => world?.stop());

const start = () => world.startController("a", "--metallb-namespace", METALLB_NAMESPACE);

async function make(name: string, annotations: Record<string, string> = {}, more: object = {}): Promise<void> {
  const spec = { type: "LoadBalancer", loadBalancerClass: CLASS, ports: [{ port: 80 }], ...more };
  await client.create(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name, annotations }, spec });
}

async function told(name: string): Promise<string> {
  const { loadBalancer, conditions } = (await client.get(`${SERVICES}/${name}`)).status;
  const ips = (loadBalancer.ingress ?? []).map(({ ip }: KubeObject) => ip);
  return `${ips} ${conditions?.[0]?.reason}`;
}

async function records(): Promise<string[]> {
  const { items } = await client.get(ALLOCATIONS);
  return items.map(({ spec }: KubeObject) => spec.address).sort();
}

const objects = () => metallbObjects(client);

it("an address is recorded, then MetalLB's, then told, and a kill between any two loses and repeats nothing", {
  timeout: 180_000,
}, async () => {
  await make("a", {}, { ipFamilyPolicy: "RequireDualStack" });
  // Without the rights it stays at the record. It may ask for a while before it reports that.
  await expect.poll(records, PATIENCE).toEqual(["10.6.0.99", "fd06::9"]);
  await expect.poll(() => told("a"), PATIENCE).toBe(" NotAnnounced");
  // Its record stays, while the collection ends this one, which is younger.
  const ids = async () => (await client.get(ALLOCATIONS)).items.map(({ metadata }: KubeObject) => metadata.uid);
  const own = await ids();
  const workload = { kind: "Service", namespace: "shop", name: "gone", uid: "gone", member: "gone" };
  await world.allocate("10.6.0.50", { node: "-", state: "Kept", holders: [], workload });
  await expect.poll(ids, PATIENCE).toEqual(own);
  await world.killControllers();
  await grantMetallb(client);
  await start();
  // MetalLB is not there yet.
  const message = async () => (await client.get(`${SERVICES}/a`)).status.conditions[0].message;
  await expect.poll(message, PATIENCE).toContain("answered with 404");
  await applyPeerKinds(client, [METALLB]);
  const ofA = ["berth false 10.6.0.99/32,fd06::9/128", "berth berth"];
  await expect.poll(() => told("a"), PATIENCE).toBe("10.6.0.99,fd06::9 Assigned");
  expect(await objects()).toEqual(ofA);
  // Without the right to tell a Service it stays at MetalLB's objects.
  const ofBoth = ["berth false 10.6.0.98/32,10.6.0.99/32,fd06::9/128", "berth berth"];
  await withoutStatus(client, async () => {
    await make("b", {}, { ipFamilyPolicy: "SingleStack", ipFamilies: ["IPv4"] });
    await expect.poll(objects, PATIENCE).toEqual(ofBoth);
    expect(await told("b")).toBe(" undefined");
    await world.killControllers();
  });
  await start();
  await expect.poll(() => told("b"), PATIENCE).toBe("10.6.0.98 Assigned");
  expect([await objects(), await records()]).toEqual([ofBoth, ["10.6.0.98", "10.6.0.99", "fd06::9"]]);
  // Lost objects are made again.
  for (const path of ["ipaddresspools", "l2advertisements"]) await client.delete(`${METALLB_PATH}/${path}/berth`);
  await expect.poll(objects, PATIENCE).toEqual(ofBoth);
});

it("a pool of MetalLB's user keeps its addresses, and says so alone; at the end nothing is left", {
  timeout: 180_000,
}, async () => {
  const kind = { apiVersion: "metallb.io/v1beta1", kind: "IPAddressPool" };
  const spec = { addresses: ["10.6.0.50-10.6.0.51"], autoAssign: false };
  await client.create(`${METALLB_PATH}/ipaddresspools`, { ...kind, metadata: { name: "other" }, spec });
  await make("c", { "ipam.vendor.io/ips": "10.6.0.50" });
  await expect.poll(() => told("c"), PATIENCE).toBe("10.6.0.50 Assigned");
  const ofAll = ["berth false 10.6.0.98/32,10.6.0.99/32,fd06::9/128", "other false 10.6.0.50-10.6.0.51", "berth berth"];
  expect(await objects()).toEqual(ofAll);
  const overlap = async (): Promise<string> => {
    const { conditions = [] } = (await client.get(`${POOLS}/blue`)).status ?? {};
    return conditions.find(({ type }: KubeObject) => type === "OverlapsOthers")?.message;
  };
  const message = `2 addresses, from 10.6.0.50 on, are also in IPAddressPool ${METALLB_NAMESPACE}/other; exclude them here or there`;
  await expect.poll(overlap, PATIENCE).toBe(message);
  await client.delete(`${METALLB_PATH}/ipaddresspools/other`);
  const ofThree = ["berth false 10.6.0.50/32,10.6.0.98/32,10.6.0.99/32,fd06::9/128", "berth berth"];
  await expect.poll(objects, PATIENCE).toEqual(ofThree);
  await expect.poll(overlap, PATIENCE).not.toBe(message);
  // A pool of that name without the label is not the controller's to change.
  const labels = { "app.kubernetes.io/managed-by": null };
  await client.patch(`${METALLB_PATH}/ipaddresspools/berth`, { metadata: { labels } });
  await make("d");
  await expect.poll(() => told("d"), PATIENCE).toBe(" NotAnnounced");
  // A Service keeps its address until MetalLB has the one that it is to have in its place.
  await client.patch(`${SERVICES}/b`, { metadata: { annotations: { "ipam.vendor.io/ips": "10.6.0.60" } } });
  await expect.poll(() => told("b"), PATIENCE).toBe("10.6.0.98 NotAnnounced");
  await client.delete(`${METALLB_PATH}/ipaddresspools/berth`);
  await expect.poll(() => told("d"), PATIENCE).toMatch(/ Assigned/);
  await expect.poll(() => told("b"), PATIENCE).toBe("10.6.0.60 Assigned");
  for (const name of ["a", "b", "c", "d"]) await client.delete(`${SERVICES}/${name}`);
  await expect.poll(async () => [await objects(), await records()], PATIENCE).toEqual([[], []]);
});
