/**
 * Workloads whose node dies (node-lost and retention, docs/workloads.md): the address comes along, and a node that is
 * back takes nothing.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import { INSTANCES, instance, MACHINES, machine, SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { add, openAgents } from "./workloads.ts";

const OUT_OF_SERVICE = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" };

let world: World;
let sweep: (() => Promise<void>) | undefined;
let machineUid = "";

beforeAll(async () => {
  world = await openAgents(["n1", "n2", "n3"]);
  sweep = await leadAddressOwners(world);
  machineUid = (await world.client.create(MACHINES, machine("db"))).metadata.uid;
});

afterEach(async () => {
  await world.client.delete(`${SETS}/web`).catch(() => {});
  await world.clear();
});

afterAll(() => world?.stop());

/** A person says that the machine is off. */
const switchOff = (node: string) => world.client.patch(`${lab.NODES}/${node}`, { spec: { taints: [OUT_OF_SERVICE] } });

async function revive(node: string): Promise<void> {
  await world.client.patch(`${lab.NODES}/${node}`, { spec: { taints: [] } });
  await world.agent(node).start();
}

describe("a StatefulSet pod", () => {
  it("node-lost: that moved off a dead node waits until the node is out of service, and the node, when it is back, lets go", async () => {
    const { uid } = (await world.client.create(SETS, statefulSet("web", 1))).metadata;
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
    const before = await world.createPod({ name: "web-0", node: "n1", owner });
    const [ip] = await add(world, before);
    await world.agent("n1").stop();
    await lab.deletePod(world.client, before);
    const after = await world.createPod({ name: "web-0", node: "n2", owner });
    const refusal = add(world, after);
    await expect(refusal).rejects.toMatchObject({ code: 11 });
    await expect(refusal).rejects.toThrow(
      `Address ${ip} is retained for StatefulSet "shop/web", and its earlier pod shop/web-0, which is deleted, still has it on node "n1"`,
    );
    await switchOff("n1");
    expect(await add(world, after)).toEqual([ip]);
    await revive("n1");
    await world.agent("n1").cluster.collector.sweep();
    await until("the node that is back has no row", async () => {
      await world.agent("n1").registry.expire();
      return (await world.agent("n1").registry.list(undefined, 9)).length === 0;
    });
    await world.untilStates([`${ip} Bound n2 web-0@n2`], sweep);
  });

  it("node-lost: of a node that is out of service is away: its address is Kept for it, by the controller", async () => {
    const { uid } = (await world.client.create(SETS, statefulSet("web", 1))).metadata;
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid };
    const pod = await world.createPod({ name: "web-0", node: "n1", owner });
    const [ip] = await add(world, pod);
    await world.agent("n1").stop();
    await lab.deletePod(world.client, pod);
    await switchOff("n1");
    await world.untilStates([`${ip} Kept n1`], sweep);
    expect(await add(world, await world.createPod({ name: "web-0", node: "n2", owner }))).toEqual([ip]);
    await revive("n1");
    await world.untilStates([`${ip} Bound n2 web-0@n2`], sweep);
  });
});

describe("a migration whose node dies", () => {
  async function migrate(): Promise<{ source: lab.LabPod; target: lab.LabPod; ip: string }> {
    await world.client.delete(`${INSTANCES}/db`).catch(() => {});
    const { uid } = (await world.client.create(INSTANCES, instance("db", machineUid))).metadata;
    const [source, target] = [await launcher("launcher-a", "n1", uid), await launcher("launcher-b", "n2", uid)];
    const [ip = ""] = await add(world, source);
    expect(await add(world, target)).toEqual([ip]);
    return { source, target, ip };
  }

  function launcher(name: string, node: string, uid: string): Promise<lab.LabPod> {
    const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db", uid };
    return world.createPod({ name, node, owner, labels: { "kubevirt.io": "virt-launcher" } });
  }

  /** The machine is started elsewhere. */
  async function startOn(node: string): Promise<readonly string[]> {
    await world.client.delete(`${INSTANCES}/db`);
    const { uid } = (await world.client.create(INSTANCES, instance("db", machineUid))).metadata;
    return add(world, await launcher("launcher-c", node, uid));
  }

  it("retention: the source's: the target continues, and the machine has its address when it starts again", async () => {
    const { source, target, ip } = await migrate();
    await world.agent("n1").stop();
    await lab.deletePod(world.client, source);
    await world.untilStates([`${ip} Bound n2 launcher-a@n1 launcher-b@n2`], sweep);
    await world.endPod(target);
    await switchOff("n1");
    expect(await startOn("n3")).toEqual([ip]);
    await world.untilStates([`${ip} Bound n3 launcher-c@n3`], sweep);
    await revive("n1");
    await world.agent("n1").cluster.collector.sweep();
    await world.untilStates([`${ip} Bound n3 launcher-c@n3`], sweep);
  });

  it("retention: the target's: the source continues, and the machine has its address when it starts again", async () => {
    const { source, target, ip } = await migrate();
    await world.agent("n2").stop();
    await lab.deletePod(world.client, target);
    await world.endPod(source);
    await switchOff("n2");
    expect(await startOn("n3")).toEqual([ip]);
    await world.untilStates([`${ip} Bound n3 launcher-c@n3`], sweep);
    await revive("n2");
    await world.agent("n2").cluster.collector.sweep();
    await world.untilStates([`${ip} Bound n3 launcher-c@n3`], sweep);
  });
});
