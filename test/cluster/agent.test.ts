/**
 * The built agent in cluster mode, from its flags to its end: an address that is an object, a start and a DEL without
 * an API server, an identity that keeps its address over nodes, the agent's reports about itself.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { followWorld } from "../lab/cluster/followed-world.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    isObserved: true,
    nodes: ["n1", "n2"],
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
  });
  await followWorld(world);
});

afterAll(() => world?.stop());

async function objectOf(address: string | undefined) {
  return (await world.allocations()).find(({ metadata }) => metadata.name === address);
}

async function end(pod: LabPod): Promise<void> {
  await world.node(pod.node).runtime.detach(pod);
  await world.deletePod(pod);
}

describe("an agent of a cluster", () => {
  it("explains an ADD's addresses in advance, and the ADD gets them", async () => {
    const { agent, runtime } = world.node("n1");
    const pod = await world.createPod({ name: "asked", node: "n1" });
    // First of all: an address is offered again a moment after its object has gone.
    const explain = () => agent.get("/v1/explain?namespace=shop&pod=asked");
    await expect.poll(explain, { timeout: 30_000 }).toMatchObject({ succeeds: true });
    const explained = await explain();
    const { addresses } = await runtime.attach(pod);
    expect(explained).toMatchObject({ nics: [{ addresses: [{ address: addresses[0], pool: "blue" }] }] });
    await end(pod);
  });

  it("gives a pod an address, which is an object of the API server until it has cooled", async () => {
    const pod = await world.createPod({ name: "web-0", node: "n1" });
    const { addresses, refusal } = await world.node("n1").runtime.attach(pod);
    expect([refusal, addresses.length]).toEqual(["", 1]);
    expect(await objectOf(addresses[0])).toMatchObject({
      spec: { state: "Bound", pool: "blue", node: "n1", holders: [{ podUID: pod.uid, interface: "eth0" }] },
    });
    await end(pod);
    await expect.poll(() => objectOf(addresses[0]), { timeout: 30_000 }).toBeUndefined();
  });

  it("reports its mode, its node and its counters; its pages show this node's part", async () => {
    const { agent, runtime } = world.node("n2");
    const pod = await world.createPod({ name: "page-0", node: "n2" });
    const { addresses } = await runtime.attach(pod);
    expect(await agent.get("/v1/health")).toMatchObject({ status: "ready", mode: "cluster", node: "n2", problems: [] });
    // Two pods: this one and the agent's own. Watches may report them a moment after the answer.
    const stats = () => agent.get("/v1/stats");
    await expect.poll(stats, { timeout: 30_000 }).toMatchObject({
      api: { connections: expect.any(Number) },
      caches: { pools: { objects: 1, bytes: expect.any(Number) }, pods: { objects: 2 } },
      allocations: { lost: 0, notices: 0 },
      prefetch: expect.any(Object),
      registry: { backlog: 0 },
    });
    expect(await agent.get("/v1/allocations")).toMatchObject([{ address: addresses[0], pod: "page-0" }]);
    await expect.poll(() => world.node("n1").agent.get("/v1/allocations"), { timeout: 30_000 }).toEqual([]);
    const { lines, succeeds } = await agent.get("/v1/explain?namespace=shop&pod=page-0");
    expect(lines.join("\n")).toContain('eth0 IPv4 pool "blue": fits');
    expect(lines).toContain(`eth0 has ${addresses[0]} of pool "blue" (Bound)`);
    expect(lines[0]).toBe(
      `an ADD of eth0 now would get ${addresses[0]} of pool "blue", which it has already, or had until just now`,
    );
    expect(succeeds).toBe(true);
    await end(pod);
  });
});

describe("the flags", () => {
  it.each([
    ["none", []],
    ["2 of them", ["--config", "/x", "--kubeconfig", "/y"]],
    ["2 of them", ["--in-cluster", "--kubeconfig", "/y"]],
  ])("one mode: %s is wrong usage", (found, args) => {
    const { status, stderr } = spawnSync(process.execPath, [join(root, "dist", "berth-agent.mjs"), ...args]);
    expect([status, String(stderr)]).toEqual([2, expect.stringContaining(`found ${found}`)]);
  });

  it("a kubeconfig that is not there ends the agent, and is named", () => {
    const { status, stderr } = spawnSync(process.execPath, [
      ...[join(root, "dist", "berth-agent.mjs"), "--kubeconfig", "/nowhere/kubeconfig"],
    ]);
    expect([status, String(stderr)]).toEqual([1, expect.stringContaining("/nowhere/kubeconfig")]);
  });
});
