/**
 * Addresses of pools that Nodes, the API server and Services have: the controller publishes them, and built agents
 * pass over them.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startOccupied } from "../../host/controller/occupied-controller.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { decodeIpPoolUsage } from "../../host/resources/ip-pool-usage.ts";
import { runBerthctl } from "../lab/berthctl.ts";
import { BERTH, berthObject, COORDINATORS, NAMESPACES, NODES, nodeObject } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** The first addresses of the pool, in its order: of a Node, of the API server, of a Service. */
const [NODE, SERVER, SERVICE, FREE] = ["10.6.0.1", "10.6.0.2", "10.6.0.3", "10.6.0.4"];
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

let world: World;
let client: KubeClient;
const made: string[] = [];

beforeAll(async () => {
  const pool = { name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.9"], selection: "ascending" };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"], pools: [pool as never] });
  ({ client } = world);
  await client.apply(`${COORDINATORS}/default`, berthObject("Coordinator", "default", {}));
});
afterEach(async () => {
  for (const path of made.splice(0).reverse()) await client.delete(path, { gracePeriodSeconds: 0 }).catch(() => {});
});
afterAll(() => world?.stop());

async function make(collection: string, name: string, object: object): Promise<void> {
  await client.create(collection, { ...object, metadata: { name, ...(object as KubeObject).metadata } });
  made.push(`${collection}/${name}`);
}

async function makeMachines(): Promise<void> {
  await make(NODES, "other", nodeObject("other"));
  const addresses = [
    { type: "Hostname", address: "other" },
    { type: "InternalIP", address: NODE },
    { type: "InternalIP", address: "192.0.2.77" },
  ];
  await client.patch(`${NODES}/other/status`, { status: { addresses } });
  await make(SLICES, "more", {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
    metadata: { labels: { "kubernetes.io/service-name": "kubernetes" } },
    endpoints: [{ addresses: [SERVER] }],
  });
  await make(`${NAMESPACES}/shop/services`, "shop-front", {
    ...{ apiVersion: "v1", kind: "Service" },
    spec: { ports: [{ port: 80 }], externalIPs: [SERVICE] },
  });
}

const occupied = async (): Promise<unknown> => (await client.get(`${COORDINATORS}/default`)).status?.occupied;

const expectOccupied = (wanted: object): Promise<void> => expect.poll(occupied, { timeout: 30_000 }).toEqual(wanted);

describe("addresses of pools that machines of the cluster have", () => {
  it("are published, passed over with the reason, and served when they are gone", async () => {
    await world.lead({ occupied: startOccupied, usage: startUsage });
    await makeMachines();
    await expectOccupied({ nodes: [NODE], apiServer: [SERVER], services: [SERVICE] });
    const explain = async (): Promise<string> =>
      (await runBerthctl("--socket", world.node("n1").agent.socket, "explain", "pool", "blue")).out;
    await expect
      .poll(explain, { timeout: 30_000 })
      .toContain(
        `never allocated: ${NODE} (a Node of the cluster has it), ${SERVER} (the API server has it), ${SERVICE} (a Service has it as its external address)`,
      );
    const pod = await world.createPod({ name: "web", node: "n1" });
    expect((await world.node("n1").runtime.attach(pod)).addresses).toEqual([FREE]);
    const usage = async () => decodeIpPoolUsage(await client.get(`${BERTH}/ippoolusages/blue`), "usage").usage;
    await expect.poll(usage, { timeout: 30_000 }).toMatchObject({ total: 6, bound: 1, free: 5 });
    for (const path of made.splice(0).reverse()) await client.delete(path, { gracePeriodSeconds: 0 });
    await expectOccupied({ nodes: [], apiServer: [], services: [] });
    await expect.poll(explain, { timeout: 30_000 }).not.toContain("never allocated");
    await expect.poll(usage, { timeout: 30_000 }).toMatchObject({ total: 9, free: 8 });
  });
});
