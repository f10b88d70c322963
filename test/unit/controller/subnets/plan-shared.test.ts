import { beforeEach, expect, test } from "vitest";
import { PlanWorld } from "./plan-world.ts";

let world: PlanWorld;

beforeEach(() => {
  world = new PlanWorld();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

test("two versions of a workload that name the same Subnet make one pool", () => {
  world.applications.want("a", "u1", { count: 5 }, { count: 2, isCurrent: false });
  world.step();
  expect([...world.pools.values()].map(({ spec }) => spec.ips)).toEqual([["10.9.0.8-10.9.0.12"]]);
});

test("a pool in deletion is written when more is reserved for it than it has: nobody can give it that any more", () => {
  world.applications.want("a", "u1", { count: 2 });
  world.step();
  const [[name, pool] = ["", undefined]] = world.pools;
  const subnet = world.subnets.get("blue");
  if (pool === undefined || subnet === undefined) throw new Error("There is no pool");
  pool.metadata.deletionTimestamp = "2026-11-20T04:00:00Z";
  world.applications.want("a", "u1");
  const isWritten = () => world.step().networks.flatMap(({ targets }) => targets.map(({ isChanged }) => isChanged));
  expect(isWritten()).toEqual([false]);
  subnet.status = { pools: [{ name, ips: ["10.9.0.2-10.9.0.7"], application: "" }] };
  expect(isWritten()).toEqual([true]);
});
