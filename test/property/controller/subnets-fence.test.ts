/**
 * The rarest of the interleavings, step by step: a write that gives addresses to a pool arrives after they were
 * promised to another one.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { flush, SUBNETS, SubnetsWorld } from "./subnets-controller.ts";

const WANTED = { subnets: ["a"], count: 2, reclaim: true, nics: ["eth0"] };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

it("a write that comes late finds the pool changed, although nothing but its promise was taken back", async () => {
  const world = new SubnetsWorld();
  const ips = ["10.0.0.1-10.0.0.2"];
  await world.kubectl("POST", SUBNETS, { metadata: { name: "a" }, spec: { subnet: "10.0.0.0/28", ips } });
  world.workloads.come("web", "w1", WANTED);
  const first = await world.start();
  // All but the write that gives the pool its addresses.
  const isGift = () => world.calls.all.some(({ call }) => call.method === "PATCH" && call.path.includes("/ippools/"));
  for (let left = 20; left > 0 && !isGift(); left--) {
    await world.advance(20);
    if (!isGift()) world.calls.finish();
    await flush();
    first.deliverAll();
  }
  const [late] = world.calls.all;
  expect(late?.call.body).toMatchObject({ spec: { ips: ["10.0.0.1-10.0.0.2"] } });
  world.crash(first);

  world.isCalm = true;
  const second = await world.start();
  const answerWith = async () => {
    second.hearWorkloads();
    for (let left = 5; left > 0; left--) {
      await world.advance(3_000);
      second.deliverAll();
      await flush();
    }
  };
  await world.kubectl("PATCH", `${SUBNETS}/a`, { spec: { excludeIPs: ips } });
  second.deliverAll();
  await answerWith();
  world.workloads.come("api", "w2", WANTED);
  await world.kubectl("PATCH", `${SUBNETS}/a`, { spec: { excludeIPs: null } });
  second.deliverAll();
  await answerWith();
  const sizes = () =>
    [...world.checker.pools.values()].map(
      ({ generated, addresses }) => `${generated?.application.name} ${addresses.size}`,
    );
  expect(sizes().sort()).toEqual(["api 2", "web 0"]);
  if (late !== undefined) world.calls.commit(late);
  expect(world.checker.breaches, world.log.join("\n")).toEqual([]);
  expect(sizes().sort()).toEqual(["api 2", "web 0"]);
  world.crash(second);
});
