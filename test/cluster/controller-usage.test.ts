/** The usage of pools, written by the controller's part on a real API server. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startShares } from "../../host/controller/usage/full-namespaces.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { decodeIpPoolUsage, type IpPoolUsage } from "../../host/resources/ip-pool-usage.ts";
import type { LabController, LabControllerOptions } from "../lab/cluster/controller.ts";
import { ALLOCATIONS, BERTH, COORDINATORS, createPod, POOLS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { claim, proposal } from "../world/subjects.ts";
import { borrowPlane } from "./borrow-plane.ts";

const USAGES = `${BERTH}/ippoolusages`;

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
});
afterEach(() => world.depose());
afterAll(async () => {
  await world?.clear();
  await world?.stop();
});

const start = (prepare?: LabControllerOptions["prepare"]): Promise<LabController> =>
  world.lead({ usage: startUsage, shares: startShares }, prepare === undefined ? {} : { prepare });

async function allocate(pool: string, address: string, state: "Bound" | "Cooling" = "Bound", namespace = "shop") {
  const holder = { namespace, pod: "web-0", podUid: "u-1", ifName: "eth0", node: "n1" };
  await world.allocate(address, { pool, state, holders: state === "Bound" ? [holder] : [] });
}

async function read(pool: string): Promise<IpPoolUsage | undefined> {
  const object = await world.client.get(`${USAGES}/${pool}`).catch(() => undefined);
  return object === undefined ? undefined : decodeIpPoolUsage(object, "test");
}

const counts = async (pool: string) => {
  const { bound, cooling, free, total } = (await read(pool))?.usage ?? {};
  return { bound, cooling, free, total };
};

describe("exhaustion: a pool's usage has an object of its own", () => {
  it("which the pool owns, and which says how much and what is in use", async () => {
    const uid = await world.pool("blue", { subnet: "10.20.0.0/24", ips: ["10.20.0.8-10.20.0.23"] });
    await allocate("blue", "10.20.0.9");
    await allocate("blue", "10.20.0.23", "Cooling");
    await start();
    await until("the object says so", async () => (await read("blue"))?.usage.bound === 1);
    const found = await read("blue");
    expect(found).toMatchObject({ poolUid: uid, usage: { total: 16, free: 14, bound: 1, cooling: 1, kept: 0 } });
    expect([...(found?.usage.bitmap ?? [])]).toEqual([0b10, 0b1000_0000]);
    const { metadata } = await world.client.get(`${USAGES}/blue`);
    expect(metadata.ownerReferences).toMatchObject([{ kind: "IPPool", name: "blue", uid, controller: true }]);
  });

  it("which counts the blocks that the pool has leased by now", async () => {
    await world.pool("leasing", { subnet: "10.29.0.0/24", source: { range: "seg" } });
    await start();
    await until("the object is there", async () => (await read("leasing"))?.usage.total === 0);
    const source = { epoch: "e1", blocks: [{ block: "10.29.0.16/28", state: "Active" }] };
    await world.client.patch(`${POOLS}/leasing/status`, { status: { source } });
    await until("the object counts the block", async () => (await read("leasing"))?.usage.total === 16);
  });

  it("which goes with its pool", async () => {
    await world.pool("brown", { subnet: "10.23.0.0/24" });
    await start();
    await until("it is there", async () => (await read("brown")) !== undefined);
    await world.client.delete(`${POOLS}/brown`);
    await until("it is gone", async () => (await read("brown")) === undefined);
  });

  it("which is made again for another pool of the same name", async () => {
    await world.pool("white", { subnet: "10.24.0.0/24" });
    const first = await start();
    await until("it is there", async () => (await read("white")) !== undefined);
    await first.close();
    await world.client.delete(`${POOLS}/white`);
    const uid = await world.pool("white", { subnet: "10.25.0.0/30" });
    await start();
    await until("it is the new pool's", async () => (await read("white"))?.poolUid === uid);
    expect((await read("white"))?.usage.total).toBe(2);
  });
});

describe("a second controller", () => {
  it("that restarts writes only what differs", async () => {
    await world.pool("pink", { subnet: "10.26.0.0/24" });
    await world.pool("red", { subnet: "10.27.0.0/24" });
    const first = await start();
    await until(
      "both are counted",
      async () => (await read("pink")) !== undefined && (await read("red")) !== undefined,
    );
    await until("and the pools say so", async () => {
      const { items } = await world.client.get(POOLS);
      return items.every(({ status }: { status?: { total?: number } }) => status?.total !== undefined);
    });
    await first.close();
    await allocate("red", "10.27.0.9");
    const { api } = await start();
    await until("the difference is written", async () => (await read("red"))?.usage.bound === 1);
    await until("the pool's status, too", async () => (await world.client.get(`${POOLS}/red`)).status?.used === 1);
    const writes = api.calls.filter((call) => !call.startsWith("GET"));
    expect(writes.sort()).toEqual(["PATCH ippools/red/status", "PUT ippoolusages/red"]);
  });
});

describe("a usage object that was edited by hand", () => {
  it.each([
    ["deleted", "10.34.0", (path: string) => world.client.delete(path)],
    ["edited", "10.35.0", (path: string) => world.client.patch(path, { status: { bound: 77, free: 0 } })],
  ])("is right again after it was %s, with the next change", async (pool, prefix, touch) => {
    await world.pool(pool, { subnet: `${prefix}.0/24`, ips: [`${prefix}.1-${prefix}.4`] });
    await start();
    await until("it is counted", async () => (await read(pool))?.usage.total === 4);
    await touch(`${USAGES}/${pool}`);
    await allocate(pool, `${prefix}.2`);
    await until("it is right", async () => (await read(pool))?.usage.bound === 1);
    expect(await counts(pool)).toEqual({ bound: 1, cooling: 0, free: 3, total: 4 });
  });
});

describe("an agent", () => {
  it("cooling-visibility: that learns from it of a pool at 80 % shows what cools there", async () => {
    await world.pool("tight", { subnet: "10.33.0.0/22", ips: ["10.33.0.1-10.33.0.10"] });
    for (let last = 1; last <= 8; last++) await allocate("tight", `10.33.0.${last}`);
    await start();
    await until("it is counted", async () => (await read("tight"))?.usage.bound === 8);
    const agent = await world.openRegistry();
    const stateOf = async (name: string) => (await world.client.get(`${ALLOCATIONS}/${name}`)).spec.state;
    for (const [owner, address] of [
      ["a", "10.33.0.9"],
      ["b", "10.33.0.10"],
    ] as const)
      await agent.registry.claim(claim(owner, [{ ...proposal(address), pool: "tight" }]));
    await agent.registry.release({ containerId: "c-a", ifName: "eth0" });
    await agent.registry.idle();
    expect(await stateOf("10.33.0.9")).toBe("Bound");
    expect(await agent.registry.readUsageSummary("tight")).toMatchObject({ total: 10 });
    await agent.registry.release({ containerId: "c-b", ifName: "eth0" });
    await agent.registry.idle();
    expect(await stateOf("10.33.0.10")).toBe("Cooling");
  });
});

it("the Coordinator lists namespaces at their limit of addresses, beside its other status", async () => {
  await world.settings({ maxAddressesPerNamespace: 3 });
  await world.create("Coordinator", "default", {});
  await world.client.patch(`${COORDINATORS}/default/status`, { status: { phase: "Synced", reason: "as before" } });
  await world.pool("share", { subnet: "10.39.0.0/24" });
  for (const last of [1, 2]) await allocate("share", `10.39.0.${last}`, "Bound", "tenant");
  await allocate("share", "10.39.0.3", "Cooling", "tenant");
  for (const last of [5, 6, 7]) await allocate("share", `10.39.0.${last}`, "Bound", "crowd");
  for (const namespace of ["tenant", "crowd"]) {
    await world.namespace(namespace);
    await createPod(world.client, { namespace, name: "web-0", node: "n1" });
  }
  // Their pod does not exist: a node's token alone has written them.
  for (const last of [10, 11, 12]) await allocate("share", `10.39.0.${last}`, "Bound", "victim");
  await start();
  const told = async () => {
    const { status } = await world.client.get(`${COORDINATORS}/default`);
    expect(status).toMatchObject({ phase: "Synced", reason: "as before" });
    return (status.fullNamespaces ?? []).filter(({ name }: { name: string }) => name === "tenant");
  };
  const isCrowdTold = async () => JSON.stringify(await world.client.get(`${COORDINATORS}/default`)).includes('"crowd"');
  await until("another namespace is reported", isCrowdTold);
  expect(await told()).toEqual([]);
  await allocate("share", "10.39.0.4", "Bound", "tenant");
  await until("the namespace is reported", async () => (await told()).length === 1);
  expect(await told()).toEqual([{ name: "tenant", addresses: 3 }]);
  expect(JSON.stringify(await world.client.get(`${COORDINATORS}/default`))).not.toContain("victim");
  await world.client.patch(`${ALLOCATIONS}/10.39.0.4`, { spec: { state: "Cooling", holders: [] } });
  await until("it has fewer", async () => (await told()).length === 0);
  await world.settings({ maxAddressesPerNamespace: 2 });
  await until("it may have fewer", async () => (await told()).length === 1);
  await world.settings({ maxAddressesPerNamespace: 0 });
  await until("no namespace is limited", async () => (await told()).length === 0);
});
