/**
 * The built agent in cluster mode, from its flags to its end.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../../scripts/lab/cluster/world.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld({ nodes: ["n1"], pools: [{ name: "blue", subnet: "10.6.0.0/24" }] });
});

afterAll(() => world?.stop());

describe("an agent of a cluster", () => {
  it("gives a pod an address, which is an object of the API server", async () => {
    const pod = await world.createPod({ name: "web-0", node: "n1" });
    const { runtime, agent } = world.node("n1");
    const { addresses, refusal } = await runtime.attach(pod);
    expect(refusal).toBe("");
    expect(addresses).toHaveLength(1);
    const [object] = (await world.allocations()).filter(({ spec }) => spec.holders?.[0]?.pod === "web-0");
    expect(object).toMatchObject({
      metadata: { name: addresses[0] },
      spec: { state: "Bound", pool: "blue", node: "n1", holders: [{ podUID: pod.uid, interface: "eth0" }] },
    });
    expect(await agent.get("/v1/health")).toMatchObject({ status: "ready", mode: "cluster", node: "n1", problems: [] });
    await runtime.detach(pod);
    await world.deletePod(pod);
    await expect.poll(() => world.allocations(), { timeout: 10_000 }).toEqual([]);
  });
});
