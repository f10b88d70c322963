/** Which addresses Subnets give when their networks meet, and what they withhold. */
import { beforeEach, describe, expect, test } from "vitest";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;

beforeEach(() => {
  world = new PlannedSubnets();
});

test.each([
  ["10.9.0.0/30", 9, "10.9.0.1-10.9.0.2"],
  ["10.9.0.0/31", 9, "10.9.0.0-10.9.0.1"],
  ["10.9.0.7/32", 9, "10.9.0.7"],
  ["fd00::/28", 1, "fd00::"],
])("of %s a pool for %i gets %s", (subnet, count, ips) => {
  world.subnet("blue", { subnet });
  world.applications.want("a", "u1", { count, family: subnet.includes(":") ? 6 : 4 });
  world.step();
  expect(world.division()).toEqual({ "a eth0 blue": ips });
});

test("routers of a Subnet are in no pool", () => {
  const routes = [{ dst: "172.20.0.0/16", gw: "10.9.0.2" }];
  world.subnet("blue", { subnet: "10.9.0.0/29", gateway: "10.9.0.1", routes });
  world.applications.want("a", "u1", { count: 9 });
  world.step();
  expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.3-10.9.0.6" });
});

describe("Subnets whose networks meet", () => {
  test("give no address that another one has given in the same plan", () => {
    world.subnet("blue", { subnet: "10.9.0.0/24" });
    world.subnet("more", { subnet: "10.9.0.0/24", ips: ["10.9.0.3-10.9.0.7"] });
    world.applications.want("a", "u1", { count: 3 });
    world.applications.want("b", "u2", { count: 3, subnets: ["more"] });
    const { shortfalls } = world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4-10.9.0.6", "b eth0 more": "10.9.0.3 10.9.0.7" });
    expect(shortfalls.map(({ has }) => has)).toEqual([2]);
  });

  test("are one network, in whatever order they come", () => {
    world.subnet("low", { subnet: "10.9.0.0/25" });
    world.subnet("wide", { subnet: "10.9.0.0/24", ips: ["10.9.0.129-10.9.0.132"] });
    world.subnet("high", { subnet: "10.9.0.128/25" });
    world.applications.want("a", "u1", { count: 3, subnets: ["wide"] });
    world.applications.want("b", "u2", { count: 3, subnets: ["high"] });
    expect(world.step().networks).toHaveLength(1);
    expect(world.division()).toEqual({
      "a eth0 wide": "10.9.0.129-10.9.0.131",
      "b eth0 high": "10.9.0.132-10.9.0.134",
    });
  });

  test("in two address spaces are two networks, each with all its addresses", () => {
    world.subnet("blue", { subnet: "10.9.0.0/24" });
    world.subnet("lab", { subnet: "10.9.0.0/24", addressSpace: "lab" });
    world.byHand = ["10.9.0.4-10.9.0.5"];
    world.applications.want("a", "u1", { count: 2 });
    world.applications.want("b", "u2", { count: 4, subnets: ["lab"] });
    expect(world.step().networks).toHaveLength(2);
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3", "b eth0 lab": "10.9.0.4-10.9.0.7" });
  });
});

test("a pool made by hand takes nothing of the other family, whose addresses have the same numbers", () => {
  world.subnet("blue", { subnet: "::a09:0/120" });
  world.byHand = ["10.9.0.0-10.9.0.255"];
  world.applications.want("a", "u1", { count: 2, family: 6 });
  world.step();
  expect(world.division()).toEqual({ "a eth0 blue": "::a09:0-::a09:1" });
});

test("a pool of a Subnet that was made again in another address space gets nothing of it", () => {
  world.subnet("blue", { subnet: "10.9.0.0/24" });
  world.applications.want("a", "u1", { count: 2 });
  world.step();
  world.held.add("10.9.0.2").add("10.9.0.3");
  world.subnet("blue", { subnet: "10.9.0.0/24", addressSpace: "lab" });
  world.applications.want("a", "u1", { count: 4 });
  world.liveness.set("shop/u1", "alive");
  world.step();
  expect([...world.pools.values()].map(({ spec }) => [spec.addressSpace, spec.ips])).toEqual([
    ["", ["10.9.0.2-10.9.0.3"]],
    ["lab", ["10.9.0.4-10.9.0.7"]],
  ]);
});

test("an address in use is found in its family", () => {
  world.subnet("blue", { subnet: "fd00:9::/64" });
  world.held.add("fd00:9::1");
  world.applications.want("a", "u1", { count: 2, family: 6 });
  world.step();
  expect(world.division()).toEqual({ "a eth0 blue": "fd00:9:: fd00:9::2" });
});
