/**
 * Pools that are generated out of Subnets, on a real API server with the controller's account and the policies of
 * deploy/: created, filled, grown, shrunk, reclaimed, taken over (docs/subnets.md).
 */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import { ScriptedPoolOwners } from "../fakes/scripted-pool-owners.ts";
import type { LabControllerOptions } from "../lab/cluster/controller.ts";
import { BERTH, POOLS, SETTINGS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
let poolOwners: ScriptedPoolOwners;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  await world.namespace("shop");
}, 120_000);
afterAll(() => world.stop());

afterEach(async () => {
  await world.depose();
  for (const plural of ["ippools", "subnets"]) {
    const { items } = await world.client.get(`${BERTH}/${plural}`);
    for (const { metadata } of items) {
      const path = `${BERTH}/${plural}/${metadata.name}`;
      await world.client.patch(path, { metadata: { finalizers: null } });
      await world.client.delete(path).catch(() => {});
    }
  }
});

async function lead(deps: LabControllerOptions["deps"] = {}) {
  poolOwners = new ScriptedPoolOwners();
  return await world.lead({ subnets: startSubnets, finalizers: startFinalizers }, { poolOwners, deps });
}

const eventually = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 60_000, interval: 20 });

const pools = async (): Promise<KubeObject[]> => (await world.client.get(POOLS)).items;

/** Returns the addresses of each pool, by the workload's name. */
async function division(): Promise<Record<string, readonly string[]>> {
  const all = (await pools()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return Object.fromEntries(all.map(({ spec }) => [spec.generated.application.name, spec.ips]));
}

async function untilDivided(wanted: Record<string, readonly string[]>): Promise<void> {
  await eventually(async () => expect(await division()).toEqual(wanted));
}

test("a pool is created for a workload, filled, grown, shrunk and deleted with it; the Subnet says what each has", async () => {
  await world.subnet("blue", {
    subnet: "10.9.0.0/24",
    gateway: "10.9.0.1",
    routes: [{ dst: "10.10.0.0/16", gw: "10.9.0.2" }],
  });
  const controller = await lead();
  poolOwners.want("web", "u-web", { count: 3 });
  await untilDivided({ web: ["10.9.0.4-10.9.0.6"] });
  const [pool] = await pools();
  expect(pool.metadata.name).toMatch(/^shop-web-eth0-v4-[0-9a-f]{10}$/);
  expect(pool.metadata.labels).toMatchObject({
    "ipam.vendor.io/subnet": "blue",
    "ipam.vendor.io/application-name": "web",
  });
  expect(pool.spec).toMatchObject({ gateway: "10.9.0.1", routes: [{ dst: "10.10.0.0/16", gw: "10.9.0.2" }] });
  expect(pool.spec.generated).toMatchObject({ wanted: 3, reason: "2 replicas and 1 more" });
  poolOwners.want("web", "u-web", { count: 6, reason: "5 replicas and 1 more" });
  await untilDivided({ web: ["10.9.0.4-10.9.0.9"] });
  await eventually(async () =>
    expect((await world.read("subnets", "blue")).status).toMatchObject({
      // without network, broadcast, gateway, and the router of its routes
      total: 252,
      assigned: 6,
      pools: [{ name: pool.metadata.name, ips: ["10.9.0.4-10.9.0.9"], application: "Deployment shop/web" }],
    }),
  );
  await world.allocate("10.9.0.8", { pool: pool.metadata.name });
  poolOwners.want("web", "u-web", { count: 2, reason: "1 replicas and 1 more" });
  // Addresses in use stay with the pool.
  await untilDivided({ web: ["10.9.0.4", "10.9.0.8"] });
  poolOwners.end("u-web");
  await eventually(async () =>
    expect((await world.read("ippools", pool.metadata.name)).metadata.deletionTimestamp).toBeDefined(),
  );
  await world.release("10.9.0.8");
  await eventually(async () => expect(await pools()).toEqual([]));
  await eventually(async () =>
    expect((await world.read("subnets", "blue")).status).toMatchObject({ assigned: 0, pools: [] }),
  );
  expect(controller.problems("subnets")).toEqual([]);
}, 120_000);

test("a full Subnet: an event on the workload in numbers, and the addresses as soon as another one gives them back", async () => {
  await world.subnet("blue", { subnet: "10.9.0.0/29", gateway: "10.9.0.1" });
  await lead();
  poolOwners.want("a", "u-a", { count: 3 });
  await untilDivided({ a: ["10.9.0.2-10.9.0.4"] });
  poolOwners.want("b", "u-b", { count: 4, reason: "3 replicas and 1 more" });
  await untilDivided({ a: ["10.9.0.2-10.9.0.4"], b: ["10.9.0.5-10.9.0.6"] });
  const told =
    'Wants 4 addresses (3 replicas and 1 more) for eth0, IPv4, and has 2: Subnet "blue" has 0 free of 5 addresses, and 2 pools';
  await eventually(async () => {
    const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
    const about = items.filter((event: KubeObject) => event.regarding.uid === "u-b");
    expect(about.map((event: KubeObject) => [event.regarding.kind, event.reason, event.note])).toContainEqual([
      ...["Deployment", "SubnetFull", told],
    ]);
  });
  poolOwners.end("u-a");
  await untilDivided({ b: ["10.9.0.3-10.9.0.6"] });
}, 120_000);

test("two that lead at once, both families, 20 workloads: each has its own addresses, and neither stands in the other's way for long", async () => {
  await world.subnet("blue", { subnet: "10.9.0.0/16" });
  await world.subnet("six", { subnet: "fd00:9::/64" });
  const one = await lead();
  const first = poolOwners;
  const two = await lead();
  const second = poolOwners;
  for (let at = 0; at < 20; at++) {
    const demands = [{ count: 5 }, { count: 5, family: 6, subnets: ["six"] }] as const;
    for (const each of [first, second]) each.want(`w${at}`, `u-${at}`, ...demands);
  }
  await eventually(async () => {
    const all = (await pools()).map(({ spec }) => spec.ips.join());
    expect(new Set(all.filter((ips) => ips !== "")).size).toBe(40);
  });
  await eventually(async () => {
    const status = (await world.read("subnets", "blue")).status;
    expect([status.assigned, status.pools.length]).toEqual([100, 20]);
  });
  // What the other has written first is a problem until the next round.
  await eventually(async () => expect([one, two].flatMap((each) => each.problems("subnets"))).toEqual([]));
}, 150_000);

test("with enableSubnet false pools stay as they are, and a deleted Subnet goes when it has none", async () => {
  await world.subnet("blue", { subnet: "10.9.0.0/24" });
  await world.subnet("green", { subnet: "10.8.0.0/24" });
  await lead();
  poolOwners.want("a", "u-a", { count: 2 });
  poolOwners.want("b", "u-b", { count: 2, subnets: ["green"] });
  await untilDivided({ a: ["10.9.0.2-10.9.0.3"], b: ["10.8.0.2-10.8.0.3"] });
  await world.settings({ enableSubnet: false });
  try {
    await eventually(async () => expect((await world.read("subnets", "green")).metadata.finalizers).toHaveLength(1));
    const green = (await pools()).find(({ spec }) => spec.generated.subnet === "green");
    poolOwners.end("u-a");
    await world.client.delete(`${BERTH}/subnets/green`);
    await world.client.delete(`${POOLS}/${green.metadata.name}`);
    await eventually(async () => expect(await world.read("subnets", "green")).toBeUndefined());
    expect(await division()).toEqual({ a: ["10.9.0.2-10.9.0.3"] });
  } finally {
    await world.client.delete(SETTINGS);
  }
}, 120_000);

test("a Subnet for some namespaces gives others nothing, and gives them a pool as soon as it is for them, too", async () => {
  await world.subnet("blue", { subnet: "10.9.0.0/24", namespaceName: ["bank"] });
  await world.subnet("red", { subnet: "10.10.0.0/24", namespaceAffinity: { matchLabels: { team: "net" } } });
  const controller = await lead();
  poolOwners.want("web", "u-web", { count: 2 });
  poolOwners.want("db", "u-db", { count: 2, subnets: ["red"] });
  const notes = async (): Promise<string> => {
    const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
    return items.map(({ reason, note }: { reason: string; note: string }) => `${reason}: ${note}`).join("\n");
  };
  await eventually(async () => {
    expect(await notes()).toContain('Subnet "blue" is for other namespaces (spec.namespaceName)');
    expect(await notes()).toContain(
      'Subnet "red" is for namespaces with other labels than "shop" has (spec.namespaceAffinity)',
    );
    expect(await notes()).toMatch(/^SubnetRefused: /m);
  });
  expect(await division()).toEqual({});
  await world.client.patch(`${BERTH}/subnets/blue`, { spec: { namespaceName: ["bank", "shop"] } });
  await world.client.patch("/api/v1/namespaces/shop", { metadata: { labels: { team: "net" } } });
  await eventually(async () => expect(Object.keys(await division()).sort()).toEqual(["db", "web"]));
  await world.client.patch("/api/v1/namespaces/shop", { metadata: { labels: { team: null } } });
  expect(controller.problems("subnets")).toEqual([]);
});
