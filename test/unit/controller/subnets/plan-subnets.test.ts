/** Plans of many pools, or of many ranges. All else is in the transcripts. */
import { beforeEach, expect, test } from "vitest";
import { MAX_POOLS_OF_SUBNET } from "../../../../host/resources/status.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

test("pools without addresses count, too, of those that a Subnet can have", () => {
  for (let i = 0; i < 4_100; i++) world.applications.want(`w${i}`, `u${i}`, { count: 0 });
  world.step();
  world.step();
  expect(world.pools.size).toBe(MAX_POOLS_OF_SUBNET);
  world.applications.want("late", "late", { count: 1 });
  const [why] = world.step().shortfalls.map(({ message }) => message.replace(/^.*: /, ""));
  expect(why).toBe('Subnet "blue" has 254 free of 254 addresses, and 2048 pools, as many as it may have');
}, 30_000);

test("a pool has no more ranges than its specification may list", () => {
  world.subnet("blue", { subnet: "10.0.0.0/16" });
  world.byHand = Array.from({ length: 2_000 }, (_, at) => `10.0.${(at * 2) >> 8}.${(at * 2) & 255}`);
  world.byHand = [...world.byHand, "10.0.15.160-10.0.255.255"];
  world.maxPoolSize = 5_000;
  const rangesOf = (at: number) => [...world.pools.values()][at]?.spec.ips as string[];
  const grow = (count: number) => {
    world.applications.want("web", "u1", { count });
    const lacks = world.step().shortfalls.map(({ message }) => message.replace(/^.*: /, ""));
    return [rangesOf(0).length, ...lacks];
  };
  const scattered = "a pool has at most 1024 ranges, and what is free lies scattered";
  expect(grow(1_000)).toEqual([1_000]);
  expect(grow(1_500)).toEqual([1_024, scattered]);
  expect(grow(1_024)).toEqual([1_024]);
  // Addresses beside its last range need no other one.
  world.byHand = world.byHand.filter((address) => address !== "10.0.8.0");
  expect(grow(1_026)).toEqual([1_024]);
  expect(rangesOf(0).at(-1)).toBe("10.0.7.255-10.0.8.1");
  world.applications.want("db", "u2", { count: 2 });
  world.step();
  expect(rangesOf(1)).toHaveLength(2);
});

test("a pool keeps of a range without end that was written by hand what it needs, and what is in use", () => {
  world.subnet("six", { subnet: "fd00::/64" });
  world.applications.want("web", "u1", { count: 2, family: 6, subnets: ["six"] });
  world.step();
  const [spec] = [...world.pools.values()].map((stored) => stored.spec);
  Object.assign(spec ?? {}, { ips: ["fd00::-fd00::ffff:ffff:ffff:ffff"] });
  world.held.add("fd00::1:0:9");
  for (let step = 0; step < 3; step++) world.step();
  expect([...world.pools.values()].map((stored) => stored.spec.ips)).toEqual([["fd00::", "fd00::1:0:9"]]);
});
