/**
 * Pods of a StatefulSet keep their addresses as long as the set wants them, and pods that have finished keep nothing
 * (node-lost and retention, docs/workloads.md).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import { SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { add, openAgents, settings } from "./workloads.ts";

let world: World;
let sweep: (() => Promise<void>) | undefined;
let uid = "";

beforeAll(async () => {
  world = await openAgents(["n1", "n2"]);
  sweep = await leadAddressOwners(world);
});

afterEach(async () => {
  await world.client.delete(`${SETS}/web`).catch(() => {});
  await settings(world, { enableStatefulSet: true });
  await world.clear();
});

afterAll(() => world?.stop());

async function set(replicas: number, start?: number): Promise<void> {
  uid = (await world.client.create(SETS, statefulSet("web", replicas, start))).metadata.uid;
}

function member(ordinal: number, node: string, spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
  return world.createPod({ name: `web-${ordinal}`, node, owner, ...spec });
}

async function only(pod: lab.LabPod): Promise<string> {
  const [ip = ""] = await add(world, pod);
  return ip;
}

describe("a pod of a StatefulSet", () => {
  it("retention: keeps its address over a restart and on another node", async () => {
    await set(2);
    const [first, other] = [await member(0, "n1"), await member(1, "n1")];
    const [ip, otherIp] = [await only(first), await only(other)];
    await world.endPod(first);
    await world.untilStates([`${ip} Kept n1`, `${otherIp} Bound n1 web-1@n1`], sweep);
    const again = await member(0, "n1");
    expect(await only(again)).toBe(ip);
    await world.endPod(again);
    expect(await only(await member(0, "n2"))).toBe(ip);
  });

  it("retention: keeps for each of its NICs that NIC's address, also where the search finds others first", async () => {
    await set(1);
    const annotations = { "k8s.v1.cni.cncf.io/networks": "lan@net1,lan@net2", ippool: { ipv4: ["line"] } };
    const nics = ["eth0", "net1", "net2"];
    const attach = async (pod: lab.LabPod): Promise<string[]> => {
      const given: string[] = [];
      for (const ifName of nics) given.push(...(await add(world, pod, { ifName })));
      return given;
    };
    await world.client.create(
      lab.POOLS,
      lab.poolObject({ name: "line", subnet: "10.8.0.0/24", default: false, selection: "ascending" }),
    );
    const other = await world.createPod({ name: "other", node: "n1", annotations });
    const ahead = await attach(other);
    const first = await member(0, "n1", { annotations });
    const given = await attach(first);
    await world.endPod(first);
    await world.endPod(other);
    await world.untilStates(
      given.map((ip) => `${ip} Kept n1`),
      sweep,
    );
    const retained = (await world.allocations()).map(({ spec }) => `${spec.workload.interface} ${spec.address}`);
    expect(retained.sort()).toEqual(nics.map((ifName, index) => `${ifName} ${given[index]}`).sort());
    const again = await attach(await member(0, "n2", { annotations }));
    expect([ahead, again]).toEqual([["10.8.0.1", "10.8.0.2", "10.8.0.3"], given]);
  });

  it("retention: gets its address at once when its earlier pod was force-deleted; that one's late DEL changes nothing", async () => {
    await set(1);
    const before = await member(0, "n1");
    const ip = await only(before);
    await lab.deletePod(world.client, before);
    const after = await member(0, "n2");
    expect(await only(after)).toBe(ip);
    await world.agent(before.node).del(before);
    await world.agent("n1").registry.idle();
    await world.untilStates([`${ip} Bound n2 web-0@n2`], sweep);
  });

  it("retention: loses its address when the set is scaled down, and gets another when it is scaled up", async () => {
    await set(3);
    const pods = [await member(0, "n1"), await member(1, "n1"), await member(2, "n2")] as const;
    const ips = [await only(pods[0]), await only(pods[1]), await only(pods[2])];
    for (const pod of pods.slice(1)) await world.endPod(pod);
    await world.untilStates([`${ips[0]} Bound n1 web-0@n1`, `${ips[1]} Kept n1`, `${ips[2]} Kept n2`], sweep);
    await world.client.patch(`${SETS}/web`, { spec: { replicas: 2 } });
    await world.untilStates([`${ips[0]} Bound n1 web-0@n1`, `${ips[1]} Kept n1`], sweep);
    await world.client.patch(`${SETS}/web`, { spec: { replicas: 3 } });
    const back = await member(2, "n1");
    const fresh = await only(back);
    await world.untilStates([`${ips[0]} Bound n1 web-0@n1`, `${ips[1]} Kept n1`, `${fresh} Bound n1 web-2@n1`], sweep);
  });

  it("retention: loses its address with the end of the set", async () => {
    await set(2, 3);
    const [first, second] = [await member(3, "n1"), await member(4, "n2")];
    await only(first);
    const ip = await only(second);
    await world.endPod(first);
    await world.client.delete(`${SETS}/web`);
    await world.untilStates([`${ip} Bound n2 web-4@n2`], sweep);
    await world.endPod(second);
    await world.untilStates([], sweep);
  });

  it("retention: whose kept address lies in no pool that is selected now gets another, and that one is released", async () => {
    await set(1);
    const before = await member(0, "n1");
    const ip = await only(before);
    await world.endPod(before);
    await world.untilStates([`${ip} Kept n1`], sweep);
    const moved = await member(0, "n2", { annotations: { ippool: { ipv4: ["green"] } } });
    const fresh = await only(moved);
    expect([ip.startsWith("10.6.0."), fresh.startsWith("10.7.0.")]).toEqual([true, true]);
    await world.untilStates([`${fresh} Bound n2 web-0@n2`], sweep);
  });

  it("retention: keeps nothing when enableStatefulSet is false", async () => {
    await set(1);
    await settings(world, { enableStatefulSet: false });
    const pod = await member(0, "n1");
    await only(pod);
    await world.endPod(pod);
    await world.untilStates([], sweep);
  });

  it("retention: of a set that is not its controller, or of another kind of that name, keeps nothing", async () => {
    await set(1);
    const meta = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
    const job = { apiVersion: "batch/v1", kind: "Job", name: "web", uid: "j-1" };
    const object = Object(lab.podObject({ name: "web-0", node: "n1", owner: job }));
    object.metadata.ownerReferences.unshift(meta);
    const { metadata } = await world.client.create(`${lab.NAMESPACES}/shop/pods`, object);
    const pod = { namespace: "shop", name: "web-0", uid: metadata.uid, node: "n1" };
    await only(pod);
    await world.endPod(pod);
    await world.untilStates([], sweep);
  });
});

describe("a finished pod", () => {
  it.each(["Succeeded", "Failed"] as const)("that has %s releases without being deleted", async (phase) => {
    const pod = await world.createPod({ name: `job-${phase.toLowerCase()}`, node: "n1" });
    await only(pod);
    await lab.finishPod(world.client, pod, phase);
    await world.untilStates([], sweep);
    await expect(add(world, pod)).rejects.toThrow("is finished");
  });

  it("that was evicted releases without being deleted", async () => {
    const pod = await world.createPod({ name: "evicted", node: "n1" });
    await only(pod);
    await world.client.patch(`${lab.podPath(pod)}/status`, { status: { phase: "Failed", reason: "Evicted" } });
    await world.untilStates([], sweep);
  });

  it("retention: of a StatefulSet keeps its address for its successor", async () => {
    await set(1);
    const pod = await member(0, "n1");
    const ip = await only(pod);
    await lab.finishPod(world.client, pod, "Failed");
    await world.untilStates([`${ip} Kept n1`], sweep);
    await lab.deletePod(world.client, pod);
    expect(await only(await member(0, "n2"))).toBe(ip);
  });
});
