/**
 * Pods of a StatefulSet keep their addresses as long as the set wants them, and pods that have finished keep nothing (node-lost and retention,
 * docs/workloads.md).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import { SETS, statefulSet } from "../../scripts/lab/cluster/workload-kinds.ts";
import { WorkloadsWorld } from "./workloads-world.ts";

let world: WorkloadsWorld;
let uid = "";

beforeAll(async () => {
  world = await WorkloadsWorld.start(["n1", "n2"]);
  await world.startController();
});

afterEach(async () => {
  await world.client.delete(`${SETS}/web`).catch(() => {});
  await world.settings({ enableStatefulSet: true });
  await world.clear();
});

afterAll(() => world?.stop());

async function set(replicas: number, start?: number): Promise<void> {
  uid = (await world.client.create(SETS, statefulSet("web", replicas, start))).metadata.uid;
}

function member(ordinal: number, node: string, spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
  return world.pod({ name: `web-${ordinal}`, node, owner, ...spec });
}

async function only(pod: lab.LabPod): Promise<string> {
  const [ip = ""] = await world.add(pod);
  return ip;
}

describe("a pod of a StatefulSet", () => {
  it("retention: keeps its address over a restart and on another node", async () => {
    await set(2);
    const [first, other] = [await member(0, "n1"), await member(1, "n1")];
    const [ip, otherIp] = [await only(first), await only(other)];
    await world.end(first);
    await world.see(`${ip} Kept n1`, `${otherIp} Bound n1 web-1@n1`);
    const again = await member(0, "n1");
    expect(await only(again)).toBe(ip);
    await world.end(again);
    expect(await only(await member(0, "n2"))).toBe(ip);
  });

  it("retention: keeps for each of its NICs that NIC's address, also where the search finds others first", async () => {
    await set(1);
    const annotations = { "k8s.v1.cni.cncf.io/networks": "lan@net1,lan@net2", ippool: { ipv4: ["line"] } };
    const nics = ["eth0", "net1", "net2"];
    const attach = async (pod: lab.LabPod): Promise<string[]> => {
      const given: string[] = [];
      for (const ifName of nics) given.push(...(await world.add(pod, { ifName })));
      return given;
    };
    await world.client.create(
      lab.POOLS,
      lab.poolObject({ name: "line", subnet: "10.8.0.0/24", default: false, selection: "ascending" }),
    );
    const other = await world.pod({ name: "other", node: "n1", annotations });
    const ahead = await attach(other);
    const first = await member(0, "n1", { annotations });
    const given = await attach(first);
    await world.end(first);
    await world.end(other);
    await world.see(...given.map((ip) => `${ip} Kept n1`));
    const kept = (await world.allocations()).map(({ spec }) => `${spec.workload.interface} ${spec.address}`);
    expect(kept.sort()).toEqual(nics.map((ifName, index) => `${ifName} ${given[index]}`).sort());
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
    await world.del(before);
    await world.node("n1").registry.idle();
    await world.see(`${ip} Bound n2 web-0@n2`);
  });

  it("retention: loses its address when the set is scaled down, and gets another when it is scaled up", async () => {
    await set(3);
    const pods = [await member(0, "n1"), await member(1, "n1"), await member(2, "n2")] as const;
    const ips = [await only(pods[0]), await only(pods[1]), await only(pods[2])];
    for (const pod of pods.slice(1)) await world.end(pod);
    await world.see(`${ips[0]} Bound n1 web-0@n1`, `${ips[1]} Kept n1`, `${ips[2]} Kept n2`);
    await world.client.patch(`${SETS}/web`, { spec: { replicas: 2 } });
    await world.see(`${ips[0]} Bound n1 web-0@n1`, `${ips[1]} Kept n1`);
    await world.client.patch(`${SETS}/web`, { spec: { replicas: 3 } });
    const back = await member(2, "n1");
    const fresh = await only(back);
    await world.see(`${ips[0]} Bound n1 web-0@n1`, `${ips[1]} Kept n1`, `${fresh} Bound n1 web-2@n1`);
  });

  it("retention: loses its address with the end of the set", async () => {
    await set(2, 3);
    const [first, second] = [await member(3, "n1"), await member(4, "n2")];
    await only(first);
    const ip = await only(second);
    await world.end(first);
    await world.client.delete(`${SETS}/web`);
    await world.see(`${ip} Bound n2 web-4@n2`);
    await world.end(second);
    await world.see();
  });

  it("retention: whose kept address lies in no pool that is selected now gets another, and that one is released", async () => {
    await set(1);
    const before = await member(0, "n1");
    const ip = await only(before);
    await world.end(before);
    await world.see(`${ip} Kept n1`);
    const moved = await member(0, "n2", { annotations: { ippool: { ipv4: ["green"] } } });
    const fresh = await only(moved);
    expect([ip.startsWith("10.6.0."), fresh.startsWith("10.7.0.")]).toEqual([true, true]);
    await world.see(`${fresh} Bound n2 web-0@n2`);
  });

  it("retention: keeps nothing when enableStatefulSet is false", async () => {
    await set(1);
    await world.settings({ enableStatefulSet: false });
    const pod = await member(0, "n1");
    await only(pod);
    await world.end(pod);
    await world.see();
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
    await world.end(pod);
    await world.see();
  });
});

describe("a finished pod", () => {
  it.each(["Succeeded", "Failed"] as const)("that has %s releases without being deleted", async (phase) => {
    const pod = await world.pod({ name: `job-${phase.toLowerCase()}`, node: "n1" });
    await only(pod);
    await lab.finishPod(world.client, pod, phase);
    await world.see();
    await expect(world.add(pod)).rejects.toThrow("is finished");
  });

  it("that was evicted releases without being deleted", async () => {
    const pod = await world.pod({ name: "evicted", node: "n1" });
    await only(pod);
    await world.client.patch(`${lab.podPath(pod)}/status`, { status: { phase: "Failed", reason: "Evicted" } });
    await world.see();
  });

  it("retention: of a StatefulSet keeps its address for its successor", async () => {
    await set(1);
    const pod = await member(0, "n1");
    const ip = await only(pod);
    await lab.finishPod(world.client, pod, "Failed");
    await world.see(`${ip} Kept n1`);
    await lab.deletePod(world.client, pod);
    expect(await only(await member(0, "n2"))).toBe(ip);
  });
});
