/**
 * `berthctl explain pool` on a real API server: what an agent's own account may read, and what that shows of a
 * generated pool.
 */

import { afterAll, beforeAll, expect, it } from "vitest";
import type { LiveObjects } from "../../host/agent/backend.ts";
import { openLiveObjects } from "../../host/agent/cluster/resources.ts";
import { explainPool } from "../../host/agent/operate/explain-pool.ts";
import { gatherPoolFacts, type PoolFactsDeps } from "../../host/agent/operate/pool-facts.ts";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { connectAgentClient } from "../lab/cluster/in-process.ts";
import { BERTH, POOLS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { EMPTY_SNAPSHOT } from "../world/subjects.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
let live: LiveObjects;
let close = async (): Promise<void> => {};

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  const client = await connectAgentClient(world.plane, "n1");
  live = openLiveObjects(client);
  close = () => client.close();
});
afterAll(async () => {
  await close();
  await world?.stop();
});

/** Returns the explanation of an agent that knows nothing by itself. */
async function explain(name: string): Promise<string[]> {
  const inventory = {
    loaded: async () => EMPTY_SNAPSHOT,
    poolCache: { counts: () => undefined, exceptionsOf: () => [] },
  };
  const deps = { inventory: inventory as unknown as PoolFactsDeps["inventory"], live };
  return explainPool(await gatherPoolFacts(deps, name)).split("\n");
}

it("a generated pool that waits for its Subnet, with all that the agent's account may see", async () => {
  await world.subnet("blue", { subnet: "10.71.0.0/24", ips: ["10.71.0.1-10.71.0.6"] });
  const pools = [
    { name: "web", ips: ["10.71.0.1-10.71.0.2"], application: "Deployment shop/web" },
    { name: "db", ips: ["10.71.0.3-10.71.0.6"], application: "StatefulSet shop/db" },
  ];
  await world.client.patch(`${BERTH}/subnets/blue/status`, { status: { total: 6, assigned: 6, pools } });
  const { client } = await world.lead({ conditions: startConditions, usage: startUsage });
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-1" };
  const generated = {
    subnet: "blue",
    application,
    interface: "eth0",
    reclaim: false,
    wanted: 4,
    reason: "3 replicas and 1 more",
  };
  const body = {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "web" } },
    spec: { subnet: "10.71.0.0/24", ips: [], generated },
  };
  await client.call({ method: "POST", path: POOLS, body });
  const ips = ["10.71.0.1-10.71.0.2"];
  await client.call({ method: "PATCH", path: `${POOLS}/web`, body: { spec: { ips } } });
  await world.allocate("10.71.0.2", { pool: "web" });
  await until("it is checked and counted", async () => {
    const usage = await world.read("ippoolusages", "web");
    const { conditions = [] } = (await world.read("ippools", "web")).status ?? {};
    return usage?.status?.bound === 1 && usage.status.total === 2 && conditions.length > 0;
  });
  expect(await explain("web")).toEqual([
    'pool "web": generated from Subnet "blue" for Deployment shop/web, UID u-1',
    "used by: interface eth0 of its pods only",
    "wants: 4 addresses (3 replicas and 1 more)",
    "has: 2 addresses of IPv4 network 10.71.0.0/24: 10.71.0.1-10.71.0.2",
    "in use: 1 by pods, 0 cooling, 0 kept, 0 in quarantine; 1 of 2 are free, at the last count of the controller",
    'in the way: has 2 of 4 addresses wanted (3 replicas and 1 more): Subnet "blue" has 0 free of 6, 6 assigned to 2 pools',
    'Subnet "blue": 6 of 6 addresses assigned to 2 pools, 0 not assigned; most have "db" (StatefulSet shop/db, 4), "web" (Deployment shop/web, 2)',
    "when Deployment shop/web is gone: the pool stays for the next Deployment shop/web (ippool-reclaim is false)",
  ]);
});

it("a pool made by hand, and none", async () => {
  await world.pool("hand", { subnet: "10.72.0.0/24", ips: ["10.72.0.9"] });
  expect((await explain("hand")).slice(0, 2)).toEqual([
    'pool "hand": created by hand; its size is fixed',
    "has: 1 address of IPv4 network 10.72.0.0/24: 10.72.0.9",
  ]);
  await expect(explain("none")).rejects.toThrow('There is no IPPool "none"');
});
