/** A tenant with one pod at a time, through the built plugin and agent: owners that do not exist empty no pool. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** All addresses of the pool. */
const SIZE = 6;

let world: World;

beforeAll(async () => {
  const pools = [{ name: "blue", subnet: "10.6.0.0/29" }];
  world = await startWorld({ startPlane: borrowPlane, nodes: ["n1"], pools });
});
afterAll(() => world?.stop());

it("pods of a set that does not exist, one after another, leave every address to others", async () => {
  const { runtime } = world.node("n1");
  const seen = new Set<string>();
  for (let index = 0; index < 2 * SIZE; index++) {
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "ghost", uid: crypto.randomUUID() };
    const pod = await world.createPod({ name: "ghost-0", node: "n1", owner });
    const { addresses, refusal } = await runtime.attach(pod);
    expect(refusal).toBe("");
    seen.add(addresses.join());
    await runtime.detach(pod);
    await world.deletePod(pod);
  }
  expect(seen.size).toBeGreaterThan(SIZE / 2);
  expect((await world.states()).filter((state) => state.includes("Kept"))).toEqual([]);
  const plain = Array.from({ length: SIZE }, (_, index) => world.createPod({ name: `plain-${index}`, node: "n1" }));
  for (const pod of await Promise.all(plain)) expect((await runtime.attach(pod)).addresses).toHaveLength(1);
});
