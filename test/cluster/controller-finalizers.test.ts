/** Deleted pools that stay until their last address is free, on a real API server. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { IN_USE_FINALIZER, POOL_LEAVING_RECHECK_MS } from "../../host/controller/finalizers/plan-finalizers.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { POOLS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
});
afterEach(() => world.depose());
afterAll(() => world?.stop());

const lead = (): Promise<LabController> => world.lead({ finalizers: startFinalizers });
const finalizersOf = async (name: string): Promise<string[] | undefined> =>
  (await world.read("ippools", name))?.metadata.finalizers;
const isMarked = async (name: string) => (await finalizersOf(name))?.includes(IN_USE_FINALIZER) === true;
const isGone = async (name: string) => (await world.read("ippools", name)) === undefined;

describe("pool-changes: a pool carries the finalizer", () => {
  it("from first sight, beside those of others, and keeps its specification", async () => {
    await world.pool("blue", { subnet: "10.20.0.0/24" }, { finalizers: ["other.example/one"] });
    await lead();
    await until("it is marked", () => isMarked("blue"));
    expect(await finalizersOf("blue")).toEqual(["other.example/one", IN_USE_FINALIZER]);
    expect((await world.read("ippools", "blue")).metadata.generation).toBe(1);
  });

  it("until its last address is free, and goes by the event of that", async () => {
    await world.pool("grey", { subnet: "10.22.0.0/24" });
    await world.allocate("10.22.0.9", { pool: "grey" });
    await world.allocate("10.22.0.10", { pool: "grey", state: "Cooling", holders: [] });
    const { api } = await lead();
    await until("it is marked", () => isMarked("grey"));
    await world.client.delete(`${POOLS}/grey`);
    await world.release("10.22.0.9");
    const countReads = () => api.calls.filter((call) => call === "GET ipallocations").length;
    const readsBefore = countReads();
    // Longer than agents need to receive the deletion.
    const deletedMs = performance.now();
    await until("that time is over", () => performance.now() - deletedMs > 3_000);
    expect(await isGone("grey")).toBe(false);
    expect(countReads()).toBe(readsBefore);
    await world.release("10.22.0.10");
    const freeMs = performance.now();
    await until("it is gone", () => isGone("grey"));
    // Not by the check that would be due.
    expect(performance.now() - freeMs).toBeLessThan(POOL_LEAVING_RECHECK_MS / 2);
    expect(countReads()).toBeGreaterThan(readsBefore);
  });

  it("as long as a list names an allocation that the cache does not know", async () => {
    await world.pool("pink", { subnet: "10.23.0.0/24" });
    const { api, caches } = await lead();
    await until("it is marked", () => isMarked("pink"));
    // An agent that has not received the deletion claims while the controller decides.
    let claims = 0;
    api.before = async ({ path, query }) => {
      if (path.endsWith("/ipallocations") && query?.fieldSelector === "spec.pool=pink" && claims++ === 0)
        await world.allocate("10.23.0.9", { pool: "pink" });
    };
    await world.client.delete(`${POOLS}/pink`);
    await until("the list was asked for", () => claims > 0);
    await until("the claim is there", () => caches.allocations.items.has("10.23.0.9"));
    const claimedMs = performance.now();
    await until("the pool is gone, or a second over", async () => {
      return (await isGone("pink")) || performance.now() - claimedMs > 1_000;
    });
    expect(await isGone("pink")).toBe(false);
    await world.release("10.23.0.9");
    await until("it is gone", () => isGone("pink"));
  });
});
