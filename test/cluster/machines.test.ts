/**
 * Addresses of pools that Nodes, the API server and Services have: the controller records them, no built agent gives
 * one away, and the record ends with the holder's object.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startGarbage } from "../../host/controller/gc/garbage-collector.ts";
import { startMachines } from "../../host/controller/networks/machines-controller.ts";
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

let world: World;
let client: KubeClient;
const made: string[] = [];

beforeAll(async () => {
  const pool = { name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.9"], selection: "ascending" };
  const settings = { allocationCooldown: "1s", garbageCollection: { interval: "10s", grace: "2s" } };
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"], pools: [pool as never], settings });
  ({ client } = world);
  await client.apply(`${COORDINATORS}/default`, berthObject("Coordinator", "default", {}));
  await world.namespace("evil");
  await lead();
});
afterEach(async () => {
  await unmake();
  await expectRecords();
  await forceDeleteAll(client);
});
afterAll(() => world?.stop());

async function make(collection: string, name: string, object: object): Promise<void> {
  await client.create(collection, { ...object, metadata: { name, ...(object as KubeObject).metadata } });
  made.push(`${collection}/${name}`);
}

async function unmake(): Promise<void> {
  for (const path of made.splice(0).reverse()) await client.delete(path, { gracePeriodSeconds: 0 }).catch(() => {});
}

const lead = () =>
  world.lead({ machines: startMachines, usage: startUsage, conditions: startConditions, garbage: startGarbage });

const SERVICES = `${NAMESPACES}/evil/services`;

async function makeNode(name: string, ...ips: readonly string[]): Promise<void> {
  await make(NODES, name, nodeObject(name));
  const addresses = [name, ...ips].map((address, at) => ({ type: at === 0 ? "Hostname" : "InternalIP", address }));
  await client.patch(`${NODES}/${name}/status`, { status: { addresses } });
}

const makePool = (name: string, spec: object) => make(POOLS, name, berthObject("IPPool", name, spec));

const of = (pool: string) => ({ annotations: { ippool: { ipv4: [pool] } } });

/** `given`: by a load balancer; a tenant writes the rest. */
async function makeService(name: string, { given = [], ...rest }: KubeObject) {
  const spec = { type: "LoadBalancer", ports: [{ port: 80 }], ...rest };
  await make(SERVICES, name, { apiVersion: "v1", kind: "Service", spec });
  const ingress = given.map((ip: string) => ({ ip }));
  await client.patch(`${SERVICES}/${name}/status`, { status: { loadBalancer: { ingress } } });
}

/** `ADDRESS STATE KIND NAME` of each record of a machine. */
async function records(): Promise<readonly string[]> {
  const { items } = await client.get(`${BERTH}/ipallocations`);
  const own = items.filter(({ spec }: KubeObject) => spec.node === "-");
  return own.map(({ spec: { address, state, workload } }: KubeObject) =>
    [address, state, workload?.kind, workload?.name].filter((word) => word !== undefined).join(" "),
  );
}

const expectRecords = (...wanted: readonly string[]): Promise<void> =>
  expect.poll(async () => (await records()).toSorted(), { timeout: 60_000 }).toEqual(wanted);

const attach = async (pod: LabPod) => (await world.node("n1").runtime.attach(pod, { limitMs: 10_000 })).addresses;

async function end(pod: LabPod): Promise<void> {
  await world.node("n1").runtime.detach(pod);
  await deletePod(client, pod);
}

describe("addresses of pools that machines of the cluster have", () => {
  it("are recorded, passed over, and served when they are gone and have cooled", async () => {
    await makeNode("other", NODE, "192.0.2.77");
    await make("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "more", {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
      metadata: { labels: { "kubernetes.io/service-name": "kubernetes" } },
      endpoints: [{ addresses: [SERVER] }],
    });
    await makeService("front", { given: [SERVICE] });
    await expectRecords(
      ...[`${NODE} Kept Node other`, `${SERVER} Kept Service kubernetes`, `${SERVICE} Kept Service front`],
    );
    const kubectl = ["--kubeconfig", world.plane.kubeconfig];
    expect((await runBerthctl(...kubectl, "ip", SERVICE)).out).toMatch(/pod +\(Service evil\/front\)/);
    expect((await runBerthctl(...kubectl, "ip", NODE)).out).toMatch(/workload +Node other\n/);
    const pod = await world.createPod({ name: "plain", node: "n1" });
    expect(await attach(pod)).toEqual([FREE]);
    const usage = async () => decodeIpPoolUsage(await client.get(`${BERTH}/ippoolusages/blue`), "usage").usage;
    await expect.poll(usage, { timeout: 30_000 }).toMatchObject({ total: 9, bound: 1, kept: 3, free: 5 });
    await unmake();
    await expectRecords();
    await expect.poll(usage, { timeout: 30_000 }).toMatchObject({ total: 9, kept: 0, free: 8 });
    await end(pod);
  });

  it("stay with the pod, and with the member, that had them before; both sides are told", async () => {
    // Of a larger pool no other owner may take an address while it cools.
    await makePool("green", { subnet: "10.9.0.0/22", selection: "ascending", cooldown: "10s" });
    const { uid } = (await client.create(SETS, statefulSet("web", 1))).metadata;
    made.push(`${SETS}/web`);
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
    const start = () => world.createPod({ name: "web-0", node: "n1", owner, ...of("green") });
    const former = await start();
    expect(await attach(former)).toEqual(["10.9.0.1"]);
    await end(former);
    const plain = await world.createPod({ name: "plain", node: "n1", ...of("green") });
    expect(await attach(plain)).toEqual(["10.9.0.2"]);
    await makeService("front", { given: ["10.9.0.1"] });
    await makeNode("late", "10.9.0.2");
    const member = await start();
    expect(await attach(member)).toEqual(["10.9.0.1"]);
    // Its sandbox is made again.
    await world.node("n1").runtime.detach(plain);
    expect(await attach(plain)).toEqual(["10.9.0.2"]);
    const told = async () => {
      const conditions: KubeObject[] = (await client.get(`${POOLS}/green`)).status?.conditions ?? [];
      return conditions
        .map(({ type, status, message }) => `${type} ${status} ${message}`)
        .sort()
        .join("; ");
    };
    // A message follows another after a minute.
    await expect
      .poll(told, { timeout: 90_000 })
      .toMatch(
        /InUseElsewhere True .*10\.9\.0\.1 \((?:pod shop\/web-0|kept for StatefulSet shop\/web, member web-0)\): Service evil\/front .*10\.9\.0\.2 \(pod shop\/plain\): Node late .*Ready True/,
      );
    const notes = async () => {
      const { items } = await client.get("/apis/events.k8s.io/v1/events");
      const own = items.filter(({ reason }: KubeObject) => reason === "AddressInUse");
      return own
        .map(({ regarding, note }: KubeObject) => `${regarding.kind} ${regarding.name}: ${note}`)
        .sort()
        .join();
    };
    const wanted = /Node late: A pod has 10\.9\.0\.2 .*Service front: A pod has 10\.9\.0\.1 of IPPool "green"/;
    await expect.poll(notes, { timeout: 30_000 }).toMatch(wanted);
    const { out } = await runBerthctl("--kubeconfig", world.plane.kubeconfig, "ip", "10.9.0.2");
    expect(out).toMatch(/pod +shop\/plain\n/);
    expect(out).toMatch(/^IPPool green: .*10\.9\.0\.2 \(pod shop\/plain\): Node late has it as well/m);
    // When the pod goes, the Node has its address.
    await end(plain);
    await expect.poll(records, { timeout: 60_000 }).toEqual(["10.9.0.2 Kept Node late"]);
    await end(member);
  });

  it("are no pod's while the controller has not looked at the pool", async () => {
    await world.depose();
    await makePool("new", { subnet: "10.7.0.0/24", ips: ["10.7.0.1-10.7.0.2"], selection: "ascending" });
    await makeService("front", { given: ["10.7.0.1"] });
    const pod = await world.createPod({ name: "early", node: "n1", ...of("new") });
    const attaching = attach(pod);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await lead();
    expect(await attaching).toEqual(["10.7.0.2"]);
    await end(pod);
  });

  it("have one record each while two controllers are killed, and none when they are gone", {
    timeout: 240_000,
  }, async () => {
    await world.depose();
    await Promise.all(["a", "b"].map((name) => world.startController(name)));
    await makePool("wide", { subnet: "10.8.0.0/24" });
    const names = Array.from({ length: 30 }, (_, at) => `s${at}`);
    const making = Promise.all(names.map((name, at) => makeService(name, { given: [`10.8.0.${at + 10}`] })));
    for (const name of ["c", "d"]) await world.replaceLeader(name);
    await making;
    await expectRecords(...names.map((name, at) => `10.8.0.${at + 10} Kept Service ${name}`));
    await unmake();
    await expectRecords();
    await world.killControllers();
    await lead();
  });
});
