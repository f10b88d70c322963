import { beforeEach, describe, expect, test } from "vitest";
import type { PoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../../host/resources/status.ts";
import { PlanWorld } from "./plan-world.ts";

let world: PlanWorld;

beforeEach(() => {
  world = new PlanWorld();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

/** Beside the workloads of the world another one wants an address. */
function wantToo(application: Partial<PoolOwner>): void {
  const { demands, faults } = world.applications.demands();
  const more = demands.map((demand) => ({ ...demand, application: { ...demand.application, ...application } }));
  world.applications.demands = () => ({ demands: [...demands, ...more], faults });
}

function owners(key: keyof PoolOwner): string[] {
  const found = [...world.pools.values()].map(({ spec }) => spec.generated as { application: PoolOwner });
  return found.map(({ application }) => application[key]).sort();
}

describe("the pool of a workload is not", () => {
  test("that of another namespace whose pods name its UID", () => {
    world.applications.want("web", "u1", { count: 2 });
    world.step();
    wantToo({ namespace: "attack" });
    world.step();
    expect(owners("namespace")).toEqual(["attack", "shop"]);
  });

  test("that of one with its name of another group's kind", () => {
    world.applications.want("web", "u1", { count: 2, reclaim: false });
    world.step();
    wantToo({ apiVersion: "apps.other.io/v1", uid: "u2" });
    world.step();
    world.step();
    expect(owners("uid")).toEqual(["u1", "u2"]);
  });

  test("taken over while it lives, or before it was asked for", () => {
    world.applications.want("web", "u2", { count: 2, reclaim: false });
    world.step();
    world.applications.end("u2");
    world.applications.want("web", "u1", { count: 2, reclaim: false });
    expect(world.step().ask).toMatchObject([{ uid: "u2" }]);
    expect(owners("uid")).toEqual(["u2"]);
    world.liveness.set("shop/u2", "alive");
    world.step();
    expect(owners("uid")).toEqual(["u1", "u2"]);
  });
});

test("a pool of a former Subnet of the name gets nothing of the new one", () => {
  world.applications.want("web", "u1", { count: 2 });
  world.step();
  world.held.add("10.9.0.2");
  world.subnet("blue", { subnet: "10.9.0.0/16" });
  world.applications.want("web", "u1", { count: 4 });
  world.liveness.set("shop/u1", "alive");
  world.step();
  world.step();
  expect([...world.pools.values()].map(({ spec }) => [spec.subnet, (spec.ips as string[]).join()])).toEqual([
    ["10.9.0.0/24", "10.9.0.2"],
    ["10.9.0.0/16", "10.9.0.4-10.9.0.7"],
  ]);
});

test("pools without addresses count, too, of those that a Subnet can have", () => {
  for (let i = 0; i < 4_100; i++) world.applications.want(`w${i}`, `u${i}`, { count: 0 });
  world.step();
  world.step();
  expect(world.pools.size).toBe(MAX_POOLS_OF_SUBNET);
}, 30_000);

test("a pool has no more ranges than its specification may list", () => {
  world.subnet("blue", { subnet: "10.0.0.0/16" });
  world.byHand = Array.from({ length: 2_000 }, (_, at) => `10.0.${(at * 2) >> 8}.${(at * 2) & 255}`);
  world.byHand = [...world.byHand, "10.0.15.160-10.0.255.255"];
  world.maxPoolSize = 5_000;
  world.applications.want("web", "u1", { count: 1_500 });
  const { shortfalls } = world.step();
  expect(world.division()["web eth0 blue"]?.split(" ")).toHaveLength(1_024);
  expect(shortfalls.map(({ reason }) => reason)).toEqual(["TooScattered"]);
  world.applications.want("db", "u2", { count: 2 });
  world.step();
  expect(world.division()["db eth0 blue"]?.split(" ")).toHaveLength(2);
});

test("a workload that asks no more for a moment keeps its pool as it is", () => {
  world.applications.want("web", "u1", { count: 3 });
  world.step();
  const before = world.division();
  world.applications.want("web", "u1");
  world.liveness.set("shop/u1", "alive");
  world.excessMs = 4_999;
  const { postponed } = world.step();
  expect(postponed.size).toBe(1);
  expect(world.division()).toEqual(before);
  world.excessMs = 5_000;
  world.step();
  expect(world.division()).toEqual({});
});
