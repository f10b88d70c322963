/** KubeVirt's machines keep their addresses, and a machine that migrates has its address on two nodes (allocation rule 8, docs/workloads.md). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import { INSTANCES, instance, MACHINES, machine } from "../../scripts/lab/cluster/workload-kinds.ts";
import { WorkloadsWorld } from "./workloads-world.ts";

let world: WorkloadsWorld;
let uid = "";

beforeAll(async () => {
  world = await WorkloadsWorld.start(["n1", "n2", "n3"]);
  uid = (await world.client.create(MACHINES, machine("db"))).metadata.uid;
});

afterEach(async () => {
  await world.settings({ enableKubevirt: true });
  await world.clear();
});

afterAll(() => world?.stop());

/** A run of the machine: the instance is made anew. */
async function run(machineUid: string | undefined = uid): Promise<string> {
  await world.client.delete(`${INSTANCES}/db`).catch(() => {});
  return (await world.client.create(INSTANCES, instance("db", machineUid))).metadata.uid;
}

function launcher(name: string, node: string, runUid: string, spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  const labels = { "kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "db" };
  const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db", uid: runUid };
  return world.pod({ name, node, labels, owner, ...spec });
}

describe("a machine", () => {
  it("rule 8: keeps its address when it is stopped and started, on whatever node", async () => {
    const first = await launcher("launcher-a", "n1", await run());
    const [ip] = await world.add(first);
    await world.end(first);
    await world.see(`${ip} Kept n1`);
    const [kept] = await world.allocations();
    expect(kept?.spec.workload).toEqual({
      ...{ kind: "VirtualMachine", namespace: "shop", name: "db", uid, member: "db", interface: "eth0" },
    });
    const second = await launcher("launcher-b", "n2", await run());
    expect(await world.add(second)).toEqual([ip]);
    await world.see(`${ip} Bound n2 launcher-b@n2`);
    await world.end(second);
    expect(await world.add(await launcher("launcher-c", "n2", await run()))).toEqual([ip]);
  });

  it("rule 8: that is made without a VirtualMachine keeps its address for the time of its run", async () => {
    const runUid = await run(undefined);
    await world.client.delete(`${INSTANCES}/db`);
    const own = (await world.client.create(INSTANCES, instance("db"))).metadata.uid;
    expect(own).not.toBe(runUid);
    const pod = await launcher("launcher-a", "n1", own);
    const [ip] = await world.add(pod);
    await world.end(pod);
    await world.see(`${ip} Kept n1`);
    expect((await world.allocations())[0]?.spec.workload).toMatchObject({ kind: "VirtualMachineInstance", uid: own });
  });

  it("rule 8: is a plain pod when enableKubevirt is false, and so is a pod that only looks like one", async () => {
    const runUid = await run();
    await world.settings({ enableKubevirt: false });
    const pod = await launcher("launcher-a", "n1", runUid);
    await world.add(pod);
    await world.end(pod);
    await world.see();
    await world.settings({ enableKubevirt: true });
    const other = await launcher("launcher-b", "n1", runUid, { labels: {} });
    await world.add(other);
    await world.end(other);
    await world.see();
  });

  it("rule 8: whose old pod lives and runs something else gets no second address meanwhile", async () => {
    const old = await launcher("launcher-a", "n1", await run());
    const [ip] = await world.add(old);
    const runUid = await run();
    for (const node of ["n1", "n2"]) {
      const next = await launcher(`launcher-${node}`, node, runUid);
      await expect(world.add(next)).rejects.toThrow(
        `Address ${ip} is retained for VirtualMachine "shop/db", and its pod shop/launcher-a still has it`,
      );
      await lab.deletePod(world.client, next);
    }
    await world.see(`${ip} Bound n1 launcher-a@n1`);
    await lab.finishPod(world.client, old);
    const next = await launcher("launcher-b", "n2", runUid);
    expect(await world.add(next)).toEqual([ip]);
  });
});

describe("a migration", () => {
  async function begin(): Promise<{ source: lab.LabPod; target: lab.LabPod; ip: string; runUid: string }> {
    const runUid = await run();
    const source = await launcher("launcher-a", "n1", runUid);
    const [ip = ""] = await world.add(source);
    const target = await launcher("launcher-b", "n2", runUid);
    expect(await world.add(target)).toEqual([ip]);
    await world.see(`${ip} Bound n2 launcher-a@n1 launcher-b@n2`);
    return { source, target, ip, runUid };
  }

  it("rule 8: that succeeds leaves the address to the target; the next one goes on from there", async () => {
    const { source, target, ip, runUid } = await begin();
    await lab.finishPod(world.client, source);
    await world.del(source);
    await world.see(`${ip} Bound n2 launcher-b@n2`);
    const back = await launcher("launcher-c", "n1", runUid);
    expect(await world.add(back)).toEqual([ip]);
    await world.see(`${ip} Bound n1 launcher-b@n2 launcher-c@n1`);
    // Whose release is written last keeps it.
    await world.end(target);
    await world.see(`${ip} Bound n1 launcher-c@n1`);
    await world.end(back);
    await world.see(`${ip} Kept n1`);
  });

  it("rule 8: that fails leaves the address to the source", async () => {
    const { source, target, ip } = await begin();
    await world.end(target);
    await world.see(`${ip} Bound n1 launcher-a@n1`);
    await world.end(source);
    await world.see(`${ip} Kept n1`);
  });

  it("rule 7: is claimed ahead of the target's ADD, and given back when that never comes", async () => {
    const runUid = await run();
    const source = await launcher("launcher-a", "n1", runUid);
    const [ip = ""] = await world.add(source);
    const end = await world.claimAhead("n2");
    try {
      const failed = await launcher("launcher-b", "n2", runUid);
      await world.see(`${ip} Bound n2 launcher-a@n1 launcher-b@n2`);
      await lab.deletePod(world.client, failed);
      await world.see(`${ip} Bound n1 launcher-a@n1`);
      const target = await launcher("launcher-c", "n2", runUid);
      await world.see(`${ip} Bound n2 launcher-a@n1 launcher-c@n2`);
      expect(await world.add(target)).toEqual([ip]);
      await world.end(source);
      await world.see(`${ip} Bound n2 launcher-c@n2`);
    } finally {
      await end();
    }
  });

  it("rule 8: is not seen as a loss by the source's agent, nor by one that starts anew", async () => {
    const { source, target, ip } = await begin();
    await world.restart("n1");
    await world.restart("n2");
    await world.node("n1").allocations.reconcile();
    await world.node("n2").allocations.reconcile();
    expect([world.node("n1").readiness().problems, world.node("n2").readiness().problems]).toEqual([[], []]);
    await world.see(`${ip} Bound n2 launcher-a@n1 launcher-b@n2`);
    expect([await world.add(source), await world.add(target)]).toEqual([[ip], [ip]]);
    await world.end(source);
    await world.see(`${ip} Bound n2 launcher-b@n2`);
  });

  it("rule 8: whose source was forgotten is taken over by the next; two that live leave no room for a third", async () => {
    const { source, target, ip, runUid } = await begin();
    const third = await launcher("launcher-c", "n3", runUid);
    await expect(world.add(third)).rejects.toThrow(`Address ${ip} is retained for VirtualMachine "shop/db"`);
    await lab.deletePod(world.client, source);
    expect(await world.add(third)).toEqual([ip]);
    await world.see(`${ip} Bound n3 launcher-b@n2 launcher-c@n3`);
    await world.end(target);
    await world.see(`${ip} Bound n3 launcher-c@n3`);
    await world.del(source);
    await world.node("n1").registry.idle();
    await world.see(`${ip} Bound n3 launcher-c@n3`);
  });
});
