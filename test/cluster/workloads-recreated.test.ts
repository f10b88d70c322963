/**
 * Workloads that are created again around their running pods (`kubectl delete --cascade=orphan`, a restored backup)
 * keep their addresses, and nothing is retained for owners that do not exist (docs/workloads.md).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import {
  CLAIMS,
  INSTANCES,
  instance,
  ipamClaim,
  MACHINES,
  machine,
  SETS,
  statefulSet,
} from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { add, openAgents } from "./workloads.ts";

let world: World;
let sweep: (() => Promise<void>) | undefined;

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  sweep = await leadAddressOwners(world);
});
afterEach(async () => {
  for (const path of [`${SETS}/web`, `${MACHINES}/db`, `${INSTANCES}/db`, `${CLAIMS}/web.net1`])
    await world.client.delete(path).catch(() => {});
  await world.clear();
});
afterAll(() => world?.stop());

const createSet = async (): Promise<string> => (await world.client.create(SETS, statefulSet("web", 2))).metadata.uid;
const ownerOf = (uid: string) => ({ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid });
const member = (node: string, uid: string): Promise<lab.LabPod> =>
  world.createPod({ name: "web-0", node, owner: ownerOf(uid) });

/** The object of the address names this workload. */
const untilOf = (ip: string | undefined, uid: string) =>
  until(`${ip} is of ${uid}`, async () => {
    await sweep?.();
    return (await world.spec(`${ip}`))?.workload?.uid === uid;
  });

async function recreateSet(pod: lab.LabPod): Promise<string> {
  await world.client.delete(`${SETS}/web`);
  const uid = await createSet();
  const ownerReferences = [{ ...ownerOf(uid), controller: true }];
  await world.client.patch(lab.podPath(pod), { metadata: { ownerReferences } });
  return uid;
}

describe("a set that is created again around its pod", () => {
  it("retention: keeps the address over a restart of the sandbox and for the member's next pod elsewhere", async () => {
    const pod = await member("n1", await createSet());
    const [ip] = await add(world, pod);
    const uid = await recreateSet(pod);
    await untilOf(ip, uid);
    await world.agent("n1").del(pod);
    expect(await add(world, pod)).toEqual([ip]);
    await world.endPod(pod);
    await world.untilStates([`${ip} Kept n1`], sweep);
    expect(await add(world, await member("n2", uid))).toEqual([ip]);
  });

  it("retention: keeps the address while the agent of its node is away: the controller follows", async () => {
    const pod = await member("n1", await createSet());
    const [ip] = await add(world, pod);
    const agent = world.agent("n1");
    await agent.stop();
    const uid = await recreateSet(pod);
    await untilOf(ip, uid);
    await lab.deletePod(world.client, pod);
    await agent.start();
    await world.untilStates([`${ip} Kept n1`], sweep);
    expect((await world.spec(`${ip}`))?.workload?.uid).toBe(uid);
    expect(await add(world, await member("n2", uid))).toEqual([ip]);
  });
});

it("retention: a machine that is created again around its run keeps its address", async () => {
  const first = (await world.client.create(MACHINES, machine("db"))).metadata.uid;
  const { uid: run } = (await world.client.create(INSTANCES, instance("db", first))).metadata;
  const labels = { "kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "db" };
  const launcher = (name: string, node: string, uid: string) =>
    world.createPod({
      ...{ name, node, labels },
      owner: { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db", uid },
    });
  const pod = await launcher("launcher-a", "n1", run);
  const [ip] = await add(world, pod);
  await world.client.delete(`${MACHINES}/db`);
  const second = (await world.client.create(MACHINES, machine("db"))).metadata.uid;
  const { metadata } = instance("db", second);
  await world.client.patch(`${INSTANCES}/db`, { metadata });
  await untilOf(ip, second);
  await world.endPod(pod);
  await world.client.delete(`${INSTANCES}/db`);
  const next = (await world.client.create(INSTANCES, instance("db", second))).metadata.uid;
  expect(await add(world, await launcher("launcher-b", "n2", next))).toEqual([ip]);
});

it("retention: an IPAMClaim that is created again under its pod keeps the address", async () => {
  const nic = { ifName: "net1", network: "lan" };
  const create = async (): Promise<string> =>
    (await world.client.create(CLAIMS, ipamClaim("web.net1", { network: "lan", interface: "net1" }))).metadata.uid;
  await create();
  const networks = [{ name: "lan", interface: "net1", "ipam-claim-reference": "web.net1" }];
  const pod = await world.createPod({
    ...{ name: "web", node: "n1" },
    annotations: { "k8s.v1.cni.cncf.io/networks": networks },
  });
  const [ip] = await add(world, pod, nic);
  await world.client.delete(`${CLAIMS}/web.net1`);
  await untilOf(ip, await create());
  await world.agent("n1").del(pod);
  expect(await add(world, pod, nic)).toEqual([ip]);
});

it("retention: nothing is retained for an owner that nobody has created, nor for one of another namespace", async () => {
  const real = await createSet();
  await world.namespace("evil");
  for (const [namespace, name, uid] of [
    ["shop", "ghost-0", "a-ghost"],
    ["evil", "web-0", real],
  ] as const) {
    const owner = { ...ownerOf(uid), name: name.slice(0, -2) };
    const pod = await world.createPod({ namespace, name, node: "n1", owner });
    await add(world, pod);
    await world.endPod(pod);
    await world.untilStates([]);
  }
});

describe("the read of an owner", () => {
  /** What the agent of n1 asks the API server, apart from reads of pods, until nothing is left to write. */
  async function callsOf(act: () => Promise<unknown>): Promise<string[]> {
    const { api, registry } = world.agent("n1");
    api.calls.splice(0);
    await act();
    await registry.idle();
    return api.calls
      .splice(0)
      .filter((call) => !/^\S+ (namespaces\/shop\/pods|pods|events|namespaces\/kube-system)/.test(call));
  }
  const named = (calls: readonly string[]): string[] => calls.map((call) => call.replace(/\/10\..*/, ""));

  it("is one for all pods of a set on a node, and none for a plain pod", async () => {
    const uid = await createSet();
    const plain = await world.createPod({ name: "plain", node: "n1" });
    const first = await member("n1", uid);
    const second = await world.createPod({ name: "web-1", node: "n1", owner: ownerOf(uid) });
    const calls = {
      plain: named(await callsOf(() => add(world, plain))),
      plainDel: named(await callsOf(() => world.agent("n1").del(plain))),
      first: named(await callsOf(() => add(world, first))),
      second: named(await callsOf(() => add(world, second))),
      del: named(await callsOf(() => world.agent("n1").del(first))),
    };
    console.log(`calls: ${JSON.stringify(calls)}`);
    const isRead = (list: readonly string[]) => list.filter((call) => call.includes("statefulsets")).length;
    expect(Object.values(calls).map(isRead)).toEqual([0, 0, 1, 0, 0]);
  });

  it("holds up neither ADD nor DEL; until it has an answer the address stays Bound", async () => {
    const uid = await createSet();
    const { api } = world.agent("n1");
    const answer = Promise.withResolvers<void>();
    api.before = async ({ path }) => {
      if (path.includes("/statefulsets/")) await answer.promise;
    };
    const pod = await member("n1", uid);
    const [ip] = await add(world, pod);
    await world.agent("n1").del(pod);
    await lab.deletePod(world.client, pod);
    await world.agent("n1").reconcile();
    expect((await world.spec(`${ip}`)).state).toBe("Bound");
    answer.resolve();
    await world.untilStates([`${ip} Kept n1`], sweep);
    api.before = async () => {};
  });
});
