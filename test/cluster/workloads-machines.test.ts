/**
 * KubeVirt's machines keep their addresses, and a machine that migrates has its address on two nodes (retention,
 * docs/workloads.md).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import * as lab from "../lab/cluster/objects.ts";
import { INSTANCES, instance, MACHINES, machine } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { add, claimAhead, openAgents, restart, settings } from "./workloads.ts";

let world: World;
let uid = "";

beforeAll(async () => {
  world = await openAgents(["n1", "n2", "n3"]);
  uid = (await world.client.create(MACHINES, machine("db"))).metadata.uid;
});

afterEach(async () => {
  await settings(world, { enableKubevirt: true });
  await world.clear();
});

afterAll(() => world?.stop());

/** A run of the machine: the instance is recreated. */
async function run(machineUid: string | undefined = uid): Promise<string> {
  await world.client.delete(`${INSTANCES}/db`).catch(() => {});
  return (await world.client.create(INSTANCES, instance("db", machineUid))).metadata.uid;
}

function launcher(name: string, node: string, runUid: string, spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  const labels = { "kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "db" };
  const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db", uid: runUid };
  return world.createPod({ name, node, labels, owner, ...spec });
}

describe("a machine", () => {
  it("retention: keeps its address when it is stopped and started, on whatever node", async () => {
    const first = await launcher("launcher-a", "n1", await run());
    const [ip] = await add(world, first);
    await world.endPod(first);
    await world.untilStates([`${ip} Kept n1`]);
    const [object] = await world.allocations();
    expect(object?.spec.workload).toEqual({
      ...{ kind: "VirtualMachine", namespace: "shop", name: "db", uid, member: "db", interface: "eth0" },
    });
    const second = await launcher("launcher-b", "n2", await run());
    expect(await add(world, second)).toEqual([ip]);
    await world.untilStates([`${ip} Bound n2 launcher-b@n2`]);
    await world.endPod(second);
    expect(await add(world, await launcher("launcher-c", "n2", await run()))).toEqual([ip]);
  });

  it("retention: that is made without a VirtualMachine keeps its address for the time of its run", async () => {
    const runUid = await run(undefined);
    await world.client.delete(`${INSTANCES}/db`);
    const own = (await world.client.create(INSTANCES, instance("db"))).metadata.uid;
    expect(own).not.toBe(runUid);
    const pod = await launcher("launcher-a", "n1", own);
    const [ip] = await add(world, pod);
    await world.endPod(pod);
    await world.untilStates([`${ip} Kept n1`]);
    expect((await world.allocations())[0]?.spec.workload).toMatchObject({ kind: "VirtualMachineInstance", uid: own });
  });

  it("retention: is a plain pod when enableKubevirt is false, and so is a pod that only has its labels", async () => {
    const runUid = await run();
    await settings(world, { enableKubevirt: false });
    const pod = await launcher("launcher-a", "n1", runUid);
    await add(world, pod);
    await world.endPod(pod);
    await world.untilStates([]);
    await settings(world, { enableKubevirt: true });
    const other = await launcher("launcher-b", "n1", runUid, { labels: {} });
    await add(world, other);
    await world.endPod(other);
    await world.untilStates([]);
  });

  it("retention: whose old pod lives and runs something else gets no second address meanwhile", async () => {
    const old = await launcher("launcher-a", "n1", await run());
    const [ip] = await add(world, old);
    const runUid = await run();
    for (const node of ["n1", "n2"]) {
      const next = await launcher(`launcher-${node}`, node, runUid);
      await expect(add(world, next)).rejects.toThrow(
        `Address ${ip} is retained for VirtualMachine "shop/db", and its pod shop/launcher-a still has it`,
      );
      await lab.deletePod(world.client, next);
    }
    await world.untilStates([`${ip} Bound n1 launcher-a@n1`]);
    await lab.finishPod(world.client, old);
    const next = await launcher("launcher-b", "n2", runUid);
    expect(await add(world, next)).toEqual([ip]);
  });
});

describe("a migration", () => {
  async function begin(): Promise<{ source: lab.LabPod; target: lab.LabPod; ip: string; runUid: string }> {
    const runUid = await run();
    const source = await launcher("launcher-a", "n1", runUid);
    const [ip = ""] = await add(world, source);
    const target = await launcher("launcher-b", "n2", runUid);
    expect(await add(world, target)).toEqual([ip]);
    await world.untilStates([`${ip} Bound n2 launcher-a@n1 launcher-b@n2`]);
    return { source, target, ip, runUid };
  }

  it("retention: that succeeds leaves the address to the target; the next one continues from there", async () => {
    const { source, target, ip, runUid } = await begin();
    await lab.finishPod(world.client, source);
    await world.agent(source.node).del(source);
    await world.untilStates([`${ip} Bound n2 launcher-b@n2`]);
    const back = await launcher("launcher-c", "n1", runUid);
    expect(await add(world, back)).toEqual([ip]);
    await world.untilStates([`${ip} Bound n1 launcher-b@n2 launcher-c@n1`]);
    // Whose release is written last keeps it.
    await world.endPod(target);
    await world.untilStates([`${ip} Bound n1 launcher-c@n1`]);
    await world.endPod(back);
    await world.untilStates([`${ip} Kept n1`]);
  });

  it("retention: that fails leaves the address to the source", async () => {
    const { source, target, ip } = await begin();
    await world.endPod(target);
    await world.untilStates([`${ip} Bound n1 launcher-a@n1`]);
    await world.endPod(source);
    await world.untilStates([`${ip} Kept n1`]);
  });

  it("prefetch: is claimed ahead of the target's ADD, and given back when that never comes", async () => {
    const runUid = await run();
    const source = await launcher("launcher-a", "n1", runUid);
    const [ip = ""] = await add(world, source);
    const end = claimAhead(world.agent("n2"));
    try {
      const failed = await launcher("launcher-b", "n2", runUid);
      await world.untilStates([`${ip} Bound n2 launcher-a@n1 launcher-b@n2`]);
      await lab.deletePod(world.client, failed);
      await world.untilStates([`${ip} Bound n1 launcher-a@n1`]);
      const target = await launcher("launcher-c", "n2", runUid);
      await world.untilStates([`${ip} Bound n2 launcher-a@n1 launcher-c@n2`]);
      expect(await add(world, target)).toEqual([ip]);
      await world.endPod(source);
      await world.untilStates([`${ip} Bound n2 launcher-c@n2`]);
    } finally {
      await end();
    }
  });

  it("retention: is not seen as a loss by the source's agent, nor by one that restarts", async () => {
    const { source, target, ip } = await begin();
    await restart(world.agent("n1"));
    await restart(world.agent("n2"));
    await world.agent("n1").cluster.allocations.reconcile();
    await world.agent("n2").cluster.allocations.reconcile();
    expect([world.agent("n1").cluster.readiness().problems, world.agent("n2").cluster.readiness().problems]).toEqual([
      [],
      [],
    ]);
    await world.untilStates([`${ip} Bound n2 launcher-a@n1 launcher-b@n2`]);
    expect([await add(world, source), await add(world, target)]).toEqual([[ip], [ip]]);
    await world.endPod(source);
    await world.untilStates([`${ip} Bound n2 launcher-b@n2`]);
  });

  it("retention: whose source was forgotten is taken over by the next; two that live leave no room for a third", async () => {
    const { source, target, ip, runUid } = await begin();
    const third = await launcher("launcher-c", "n3", runUid);
    await expect(add(world, third)).rejects.toThrow(`Address ${ip} is retained for VirtualMachine "shop/db"`);
    await lab.deletePod(world.client, source);
    expect(await add(world, third)).toEqual([ip]);
    await world.untilStates([`${ip} Bound n3 launcher-b@n2 launcher-c@n3`]);
    await world.endPod(target);
    await world.untilStates([`${ip} Bound n3 launcher-c@n3`]);
    await world.agent(source.node).del(source);
    await world.agent("n1").registry.idle();
    await world.untilStates([`${ip} Bound n3 launcher-c@n3`]);
  });
});
