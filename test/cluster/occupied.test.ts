/**
 * Addresses of pools that Nodes, the API server and Services have: the controller publishes them, and built agents
 * pass over them.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startOccupied } from "../../host/controller/networks/occupied-controller.ts";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { decodeIpPoolUsage } from "../../host/resources/ip-pool-usage.ts";
import { runBerthctl } from "../lab/berthctl.ts";
import {
  BERTH,
  berthObject,
  COORDINATORS,
  deletePod,
  type LabPod,
  NAMESPACES,
  NODES,
  nodeObject,
  POOLS,
} from "../lab/cluster/objects.ts";
import { forceDeleteAll } from "../lab/cluster/rights.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** The first addresses of the pool, in its order: of a Node, of the API server, of a Service. */
const ALL = Array.from({ length: 9 }, (_, at) => `10.6.0.${at + 1}`);
const [NODE, SERVER, SERVICE, FREE] = ALL as [string, string, string, string];
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

let world: World;
let client: KubeClient;
const made: string[] = [];

beforeAll(async () => {
  const pool = { name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.9"], selection: "ascending" };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"], pools: [pool as never] });
  ({ client } = world);
  await client.apply(`${COORDINATORS}/default`, berthObject("Coordinator", "default", {}));
  await world.namespace("evil");
  await world.lead({ occupied: startOccupied, usage: startUsage, conditions: startConditions });
});
afterEach(async () => {
  for (const path of made.splice(0).reverse()) await client.delete(path, { gracePeriodSeconds: 0 }).catch(() => {});
  await forceDeleteAll(client);
  await expectOccupied(NONE);
  await expect.poll(explain, { timeout: 30_000 }).not.toContain("never allocated");
});
afterAll(() => world?.stop());

async function make(collection: string, name: string, object: object): Promise<void> {
  await client.create(collection, { ...object, metadata: { name, ...(object as KubeObject).metadata } });
  made.push(`${collection}/${name}`);
}

const SERVICES = `${NAMESPACES}/evil/services`;

async function makeNode(name: string, ...ips: readonly string[]): Promise<void> {
  await make(NODES, name, nodeObject(name));
  const addresses = [name, ...ips].map((address, at) => ({ type: at === 0 ? "Hostname" : "InternalIP", address }));
  await client.patch(`${NODES}/${name}/status`, { status: { addresses } });
}

/** `given`: by a load balancer; the rest is what a tenant writes. */
async function makeService(name: string, { given = [], ...rest }: KubeObject) {
  const spec = { type: "LoadBalancer", ports: [{ port: 80 }], ...rest };
  await make(SERVICES, name, { apiVersion: "v1", kind: "Service", spec });
  const ingress = given.map((ip: string) => ({ ip }));
  await client.patch(`${SERVICES}/${name}/status`, { status: { loadBalancer: { ingress } } });
}

const occupied = async (): Promise<unknown> => (await client.get(`${COORDINATORS}/default`)).status?.occupied;

const expectOccupied = (wanted: object): Promise<void> => expect.poll(occupied, { timeout: 60_000 }).toEqual(wanted);

const NONE = { nodes: [], apiServer: [], services: [] };
const explain = async (): Promise<string> =>
  (await runBerthctl("--socket", world.node("n1").agent.socket, "explain", "pool", "blue")).out;

const attach = async (pod: LabPod) => (await world.node("n1").runtime.attach(pod, { limitMs: 10_000 })).addresses;

async function end(pod: LabPod): Promise<void> {
  await world.node("n1").runtime.detach(pod);
  await deletePod(client, pod);
}

describe("addresses of pools that machines of the cluster have", () => {
  it("are published, passed over with the reason, and served when they are gone", async () => {
    await makeNode("other", NODE, "192.0.2.77");
    await make(SLICES, "more", {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
      metadata: { labels: { "kubernetes.io/service-name": "kubernetes" } },
      endpoints: [{ addresses: [SERVER] }],
    });
    await makeService("front", { given: [SERVICE] });
    await expectOccupied({ nodes: [NODE], apiServer: [SERVER], services: [SERVICE] });
    await expect
      .poll(explain, { timeout: 30_000 })
      .toContain(
        `never allocated: ${NODE} (a Node of the cluster has it), ${SERVER} (the API server has it), ${SERVICE} (a Service has it as its external address)`,
      );
    const pod = await world.createPod({ name: "plain", node: "n1" });
    expect(await attach(pod)).toEqual([FREE]);
    const usage = async () => decodeIpPoolUsage(await client.get(`${BERTH}/ippoolusages/blue`), "usage").usage;
    await expect.poll(usage, { timeout: 30_000 }).toMatchObject({ total: 6, bound: 1, free: 5 });
    for (const path of made.splice(0).reverse()) await client.delete(path, { gracePeriodSeconds: 0 });
    await expectOccupied(NONE);
    await expect.poll(explain, { timeout: 30_000 }).not.toContain("never allocated");
    await expect.poll(usage, { timeout: 30_000 }).toMatchObject({ total: 9, free: 8 });
    await end(pod);
  });

  it("stay with the pod, and with the member, that had them before; both sides are told", async () => {
    const { uid } = (await client.create(SETS, statefulSet("web", 1))).metadata;
    made.push(`${SETS}/web`);
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
    const start = () => world.createPod({ name: "web-0", node: "n1", owner });
    const former = await start();
    expect(await attach(former)).toEqual(["10.6.0.1"]);
    await end(former);
    const plain = await world.createPod({ name: "plain", node: "n1" });
    expect(await attach(plain)).toEqual(["10.6.0.2"]);
    await makeService("front", { given: ["10.6.0.1"] });
    await makeNode("late", "10.6.0.2");
    await expect.poll(explain, { timeout: 60_000 }).toContain("10.6.0.1 (a Service has it as its external address)");
    const member = await start();
    expect(await attach(member)).toEqual(["10.6.0.1"]);
    // Its sandbox is made again.
    await world.node("n1").runtime.detach(plain);
    expect(await attach(plain)).toEqual(["10.6.0.2"]);
    const told = async () => {
      const conditions: KubeObject[] = (await client.get(`${POOLS}/blue`)).status?.conditions ?? [];
      return conditions
        .map(({ type, status, message }) => `${type} ${status} ${message}`)
        .sort()
        .join("; ");
    };
    // A message follows another after a minute.
    await expect
      .poll(told, { timeout: 90_000 })
      .toMatch(
        /InUseElsewhere True .*10\.6\.0\.1 \((?:pod shop\/web-0|kept for StatefulSet web, web-0)\): Service evil\/front .*10\.6\.0\.2 \(pod shop\/plain\): Node late .*Ready True/,
      );
    const notes = async () => {
      const { items } = await client.get("/apis/events.k8s.io/v1/events");
      const own = items.filter(({ reason }: KubeObject) => reason === "AddressInUse");
      return own
        .map(({ regarding, note }: KubeObject) => `${regarding.kind} ${regarding.name}: ${note}`)
        .sort()
        .join();
    };
    const wanted = /Node late: A pod has 10\.6\.0\.2 .*Service front: A pod has 10\.6\.0\.1 of IPPool "blue"/;
    await expect.poll(notes, { timeout: 30_000 }).toMatch(wanted);
    for (const pod of [member, plain]) await end(pod);
  });
});
