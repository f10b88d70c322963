/**
 * Three clusters on one segment share a /24 in blocks of /28: one with real kubelets, two whose pods get the runtime's
 * calls from here. The hub is east. An observer on the wire judges: no address answers twice, and none without its
 * record in one of the clusters. The controllers' clocks of blocks are fast (hasty-controller.ts).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RANGES, rangeObject } from "../lab/cluster/hub.ts";
import { LeasingCluster, leasedPool, leasesOf, startHastyController } from "../lab/cluster/leasing-cluster.ts";
import { POOLS } from "../lab/cluster/objects.ts";
import { STORED_AS_JSON } from "../lab/history/stored.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import { NAMESPACE, type RealCluster, readNode, startRealCluster } from "../lab/nodes/cluster.ts";
import { plugIn } from "../lab/nodes/node.ts";
import { observe } from "../lab/nodes/observe.ts";
import { deploymentOf, paths } from "../lab/nodes/workloads.ts";
import { type Observer, startObserver } from "../lab/observer/observer.ts";
import { allRecords, etcdRecords } from "../lab/observer/records.ts";
import { eventually, until, untilDefined } from "../lab/waiting.ts";

const SUBNET = "10.99.16.0/24";
/** Without the first and the last one of the /24. */
const ADDRESSES = 254;
const SPEED = 240;
/** In place of an hour; the kubelets' pods start meanwhile. */
const AWAY_MS = 120_000;
const PATIENCE_MS = 300_000;
const SENDERS = { v4: "10.99.0.254", v6: "fd00:99::fffe" };
const deployments = paths.deployments(NAMESPACE);

let world: NetnsWorld;
let kubelets: RealCluster;
let east: LeasingCluster;
let west: LeasingCluster;
let observer: Observer;

beforeAll(async () => {
  world = new NetnsWorld("seg");
  kubelets = await startRealCluster({ nodes: 2, controllers: 0, serverArgs: [STORED_AS_JSON] });
  world.defer(() => kubelets.stop());
  const { switch: wires } = kubelets;
  const network = `seg${process.pid}`;
  const open = async (name: string, host: number): Promise<LeasingCluster> => {
    const address = `10.99.0.${host}`;
    const machine = await plugIn(wires, `control-${name}`, address);
    world.defer(() => machine.delete());
    const node = await plugIn(wires, `node-${name}`, `10.99.0.${host + 1}`);
    world.defer(() => node.delete());
    return LeasingCluster.open(world, { name, machine, address, node, network });
  };
  east = await open("east", 100);
  west = await open("west", 110);
  await world.define(network, [{ type: "macvlan", master: "eth0", mode: "bridge", ipam: { type: "berth" } }]);
  const shares = { east: 16, west: 16, kubelets: 16 };
  await east.client.create(RANGES, rangeObject("lan", { subnet: SUBNET, blockSize: 28 }, shares));
  await kubelets.client.delete(`${POOLS}/lan`);
  const controller = await startHastyController(kubelets.plane, {
    ...{ name: "kubelets", hub: east.plane, machine: wires, speed: SPEED },
  });
  world.defer(() => controller.kill());
  await kubelets.client.create(POOLS, {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "lan" } },
    spec: { subnet: SUBNET, source: { range: "lan" }, default: true },
  });
  for (const cluster of [east, west]) await cluster.lease({ hub: east.plane, pool: { subnet: SUBNET }, speed: SPEED });
  observer = await openObserver();
}, 600_000);
afterAll(() => world?.delete());

async function openObserver(): Promise<Observer> {
  const { switch: wires, nodes } = kubelets;
  const records = [
    etcdRecords(kubelets.plane.etcdUrl, wires.path),
    ...["east", "west"].map((name) => etcdRecords("http://127.0.0.1:2379", `/run/netns/${wires.name}-control-${name}`)),
  ];
  const seen = await startObserver({
    ...{ name: "shared", segment: { path: wires.path, bridge: "lan" }, senders: SENDERS, ranges: [SUBNET] },
    records: allRecords(...records),
  });
  for (const node of nodes) readNode(seen, node);
  for (const name of ["east", "west"]) seen.read(name, `/run/netns/seg-${name}-*`);
  return seen;
}

const scale = (replicas: number) => kubelets.client.patch(`${deployments}/web`, { spec: { replicas } });

/** Starts pods until one is refused; returns why. */
async function fill(cluster: LeasingCluster, prefix: string): Promise<string> {
  for (let number = 0; ; number++) {
    const { refusal } = await cluster.start(`${prefix}-${number}`);
    if (refusal !== undefined) return refusal;
  }
}

async function warnings(): Promise<string[]> {
  const { items } = await kubelets.client.get(`/api/v1/namespaces/${NAMESPACE}/events?fieldSelector=type%3DWarning`);
  return items.map(({ message }: KubeObject) => message);
}

function addresses(): string[] {
  return [east, west].flatMap(({ pods }) => [...pods.values()].map(({ address }) => address));
}

const findings = async (): Promise<string[]> => (await observer.take()).map(({ text }) => text);

const held = async (member: string): Promise<number> =>
  [...(await leasesOf(east.client)).values()].filter((each) => each === member).length;

it("pods start in all; the hub may be away; until the /24 is full no address is given twice", async () => {
  const seen = observe(kubelets);
  await kubelets.client.create(deployments, deploymentOf({ name: "web", replicas: 20 }));
  for (const cluster of [east, west]) for (let number = 0; number < 4; number++) await cluster.start(`first-${number}`);
  await seen.untilReady("web", 20);

  await east.plane.server.stop();
  const endMs = performance.now() + AWAY_MS;
  await scale(24);
  await seen.untilReady("web", 24);
  const unasked = async () => ((await leasedPool(kubelets.client)).problem ?? "").includes("cannot be asked");
  await until("the pool says that its hub is away", unasked, PATIENCE_MS);
  const refusal = await fill(west, "away");
  console.log(refusal);
  expect(refusal).toMatch(/the hub cannot be asked, pods get what is leased already/);
  await sleep(Math.max(0, endMs - performance.now()));
  await east.plane.server.start();
  const late = await eventually(
    () => west.start("late"),
    ({ pod }) => pod !== undefined,
    PATIENCE_MS,
  );
  expect(late.refusal).toBeUndefined();

  const refusals = await Promise.all([fill(east, "more"), fill(west, "more")]);
  await scale(70);
  const said = await untilDefined(
    async () => (await warnings()).find((text) => text.includes("no block is free")),
    warnings,
    PATIENCE_MS,
  );
  for (const text of [...refusals, said]) {
    console.log(text);
    expect(text).toMatch(/no block is free: this cluster has \d+, \w+ \d+, \w+ \d+/);
  }
  const running = async () => (await seen.pods("web")).flatMap(({ status }) => status.podIP ?? []);
  const all = await eventually(
    async () => [...addresses(), ...(await running())],
    (found) => found.length >= ADDRESSES,
    PATIENCE_MS,
  );
  expect([all.length, new Set(all).size]).toEqual([ADDRESSES, ADDRESSES]);
  expect(await findings()).toEqual([]);
});

it("blocks come back, and another cluster's pods start with them", async () => {
  const before = await held("west");
  for (const name of [...west.pods.keys()]) await west.end(name);
  await until("west returns blocks", async () => (await held("west")) < before, PATIENCE_MS);
  const { pod } = await eventually(
    () => east.start("again"),
    ({ pod }) => pod !== undefined,
    PATIENCE_MS,
  );
  expect(pod).toBeDefined();
  console.log([...(await leasesOf(east.client))].map((each) => each.join(" ")).join(", "));
  expect(await findings()).toEqual([]);
  await observer.stop();
});
