import { beforeEach, describe, expect, test } from "vitest";
import type { PoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../../host/resources/status.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

test("a workload gets a pool of its own, and nothing is planned twice", () => {
  world.applications.want("web", "u1", { count: 3 });
  world.step();
  expect(world.division()).toEqual({ "web eth0 blue": "10.9.0.4-10.9.0.6" });
  expect(world.generated("web")).toMatchObject({ wanted: 3, reason: "2 replicas and 1 more", reclaim: true });
  const quiet = world.step();
  expect(quiet.networks.flatMap(({ targets }) => targets).filter(({ isChanged }) => isChanged)).toEqual([]);
  expect(quiet.networks[0]?.grows).toBe(false);
});

test("two workloads, NICs and families have pools of their own", () => {
  world.subnet("six", { subnet: "fd00:9::/64" });
  world.applications.want(
    "web",
    "u1",
    { count: 2 },
    { count: 2, ifName: "net1" },
    { count: 2, family: 6, subnets: ["six"] },
  );
  world.applications.want("db", "u2", { count: 2 });
  world.step();
  expect(world.division()).toEqual({
    "db eth0 blue": "10.9.0.2-10.9.0.3",
    "web eth0 blue": "10.9.0.4-10.9.0.5",
    "web eth0 six": "fd00:9::-fd00:9::1",
    "web net1 blue": "10.9.0.6-10.9.0.7",
  });
});

describe("growing and shrinking", () => {
  beforeEach(() => {
    world.applications.want("web", "u1", { count: 3 });
    world.step();
  });

  test("grows next to what it has", () => {
    world.applications.want("web", "u1", { count: 5, reason: "4 replicas and 1 more" });
    world.step();
    expect(world.division()).toEqual({ "web eth0 blue": "10.9.0.4-10.9.0.8" });
    expect(world.generated("web")).toMatchObject({ wanted: 5, reason: "4 replicas and 1 more" });
  });

  test("gives back from the same end, except addresses in use, and the rest later", () => {
    world.held.add("10.9.0.6").add("10.9.0.5");
    world.applications.want("web", "u1", { count: 1 });
    const plan = world.step();
    expect(world.division()).toEqual({ "web eth0 blue": "10.9.0.5-10.9.0.6" });
    expect([...plan.waiting]).toHaveLength(1);
    world.held.delete("10.9.0.6");
    world.step();
    expect(world.division()).toEqual({ "web eth0 blue": "10.9.0.5" });
  });

  test("keeps for a while what it has too many", () => {
    world.excessMs = 4_999;
    world.applications.want("web", "u1", { count: 1 });
    const { excess, postponed } = world.step();
    expect([...excess]).toEqual([...postponed]);
    expect(world.division()).toEqual({ "web eth0 blue": "10.9.0.4-10.9.0.6" });
    expect(world.generated("web")).toMatchObject({ wanted: 3 });
  });

  test("gives it back at once when another workload lacks addresses", () => {
    world.excessMs = 0;
    world.subnet("blue", { subnet: "10.9.0.0/24", ips: ["10.9.0.4-10.9.0.6"] });
    world.applications.want("web", "u1", { count: 1 });
    world.applications.want("db", "u2", { count: 2 });
    world.step();
    world.step();
    expect(world.division()).toEqual({ "db eth0 blue": "10.9.0.5-10.9.0.6", "web eth0 blue": "10.9.0.4" });
  });
});

describe("a Subnet that is full", () => {
  beforeEach(() => world.subnet("blue", { subnet: "10.9.0.0/29", gateway: "10.9.0.1" }));

  test("gives what it has, says what is lacking, and the rest when addresses come back", () => {
    world.applications.want("a", "u1", { count: 3 });
    world.applications.want("b", "u2", { count: 4, reason: "3 replicas and 1 more" });
    const { shortfalls } = world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.4", "b eth0 blue": "10.9.0.5-10.9.0.6" });
    expect(shortfalls.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
      'SubnetFull: Wants 4 addresses (3 replicas and 1 more) for eth0, IPv4, and has 2: Subnet "blue" has 0 free of 5 addresses, and 2 pools',
    ]);
    expect(world.generated("b")).toMatchObject({ wanted: 4 });
    world.liveness.set("shop/u1", "gone");
    world.applications.end("u1");
    world.step();
    world.finish();
    // What the pool had is free when the Subnet says so.
    world.step();
    expect(world.step().shortfalls).toEqual([]);
    expect(world.division()).toEqual({ "b eth0 blue": "10.9.0.3-10.9.0.6" });
  });

  test("the next Subnet of the list gives the rest, and loses it first", () => {
    world.subnet("green", { subnet: "10.8.0.0/24" });
    world.applications.want("a", "u1", { count: 7, subnets: ["blue", "green"] });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.6", "a eth0 green": "10.8.0.2-10.8.0.3" });
    world.applications.want("a", "u1", { count: 4, subnets: ["blue", "green"] });
    world.step();
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.5" });
  });

  test("the pool is there all the same: it says what is lacking", () => {
    world.subnet("blue", { subnet: "10.9.0.0/29", ips: [] });
    world.applications.want("a", "u1", { count: 2 });
    const { shortfalls, networks } = world.step();
    expect(shortfalls[0]?.reason).toBe("SubnetFull");
    expect(world.division()).toEqual({ "a eth0 blue": "" });
    // It is created as it should be.
    expect(networks[0]?.targets).toMatchObject([{ isChanged: false }]);
  });
});

describe("what is in the way", () => {
  test.each([
    {
      why: "no such Subnet",
      subnets: ["red"],
      shortfall:
        'SubnetMissing: Wants 3 addresses (2 replicas and 1 more) for eth0, IPv4, and has 0: Subnet "red" does not exist or cannot be used',
    },
    {
      why: "a Subnet of the other family",
      subnets: ["six"],
      shortfall:
        'SubnetMissing: Wants 3 addresses (2 replicas and 1 more) for eth0, IPv4, and has 0: Subnet "six" is not IPv4',
    },
  ])("$why", ({ subnets, shortfall }) => {
    world.subnet("six", { subnet: "fd00:9::/64" });
    world.applications.want("a", "u1", { subnets });
    const { shortfalls } = world.step();
    expect(shortfalls.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([shortfall]);
    expect(world.division()).toEqual({});
  });

  test("the largest size of a pool", () => {
    world.maxPoolSize = 2;
    world.applications.want("a", "u1", { count: 3 });
    const { shortfalls } = world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
    expect(shortfalls[0]?.message).toMatch(/and has 2: a generated pool has at most 2 \(maxGeneratedPoolSize\)$/);
  });

  test("the most of a namespace, over all its pools", () => {
    world.maxPerNamespace = 4;
    world.applications.want("a", "u1", { count: 3 });
    world.applications.want("b", "u2", { count: 3 });
    const { shortfalls } = world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4-10.9.0.6", "b eth0 blue": "10.9.0.1" });
    expect(shortfalls[0]?.message).toMatch(/has 1: namespace "shop" may have 4 \(maxGeneratedAddressesPerNamespace\)$/);
  });

  const borders: [what: string, spec: object, labels: Record<string, string>, refusal: string | undefined][] = [
    ["of other names", { namespaceName: ["bank"] }, {}, "is for other namespaces (spec.namespaceName)"],
    ["of its name", { namespaceName: ["bank", "shop"] }, {}, undefined],
    ["of other labels", { namespaceAffinity: { matchLabels: { team: "b" } } }, { team: "a" }, 'is for namespaces with other labels than "shop" has (spec.namespaceAffinity)'],
    ["of its labels", { namespaceAffinity: { matchLabels: { team: "a" } } }, { team: "a" }, undefined],
    ["of its name, whatever its labels", { namespaceName: ["shop"], namespaceAffinity: { matchLabels: { team: "b" } } }, {}, undefined],
    ["of no names", { namespaceName: [] }, {}, undefined],
  ]; // biome-ignore format: a table
  test.each(borders)("a Subnet for namespaces %s", (_what, spec, labels, refusal) => {
    const world = new PlannedSubnets();
    world.labels = labels;
    world.subnet("blue", { subnet: "10.9.0.0/29", ...spec });
    world.applications.want("a", "u1", { count: 2 });
    const lacks = world.step().shortfalls.map(({ reason, message }) => `${reason}: ${message}`);
    expect(lacks).toEqual(
      refusal === undefined
        ? []
        : [expect.stringMatching(/^SubnetRefused: Wants 2 addresses .* and has 0: Subnet "blue" /)],
    );
    expect(lacks.join()).toContain(refusal ?? "");
    expect(Object.keys(world.division())).toEqual(refusal === undefined ? ["a eth0 blue"] : []);
  });

  test("a Subnet that is closed to a namespace takes nothing away from it, and gives it nothing more", () => {
    const world = new PlannedSubnets();
    world.subnet("blue", { subnet: "10.9.0.0/28" });
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const before = world.division();
    world.subnet("blue", { subnet: "10.9.0.0/28", namespaceName: ["bank"] });
    world.applications.want("a", "u1", { count: 5 });
    world.step();
    expect(world.division()).toEqual(before);
  });

  test("a Subnet that is being deleted gives nothing, and takes nothing away", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const blue = world.subnets.get("blue");
    if (blue !== undefined) blue.metadata.deletionTimestamp = "2026-11-20T04:00:00Z";
    world.applications.want("a", "u1", { count: 4 });
    expect(world.step().shortfalls[0]?.message).toContain('Subnet "blue" is being deleted');
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
  });
});

describe("what no pool gets", () => {
  test("gateway, edges, what is excluded, reserved, or in a pool made by hand", () => {
    world.subnet("blue", { subnet: "10.9.0.0/28", gateway: "10.9.0.1", excludeIPs: ["10.9.0.2-10.9.0.5"] });
    world.byHand = ["10.9.0.6-10.9.0.7", "10.9.0.9"];
    world.applications.want("a", "u1", { count: 20 });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.8 10.9.0.10-10.9.0.14" });
  });

  test("addresses in use through another pool", () => {
    world.subnet("blue", { subnet: "10.9.0.0/29" });
    world.held.add("10.9.0.4");
    world.applications.want("a", "u1", { count: 6 });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.1-10.9.0.3 10.9.0.5-10.9.0.6" });
  });

  test("an address that an edited Subnet no longer has goes when it is not in use, and is replaced", () => {
    world.applications.want("a", "u1", { count: 3 });
    world.step();
    world.held.add("10.9.0.4");
    world.subnet("blue", { subnet: "10.9.0.0/24", excludeIPs: ["10.9.0.0-10.9.0.15"] });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4 10.9.0.16-10.9.0.18" });
    world.held.clear();
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.16-10.9.0.18" });
  });

  test("addresses of a pool made by hand", () => {
    world.applications.want("a", "u1", { count: 3 });
    world.step();
    world.byHand = ["10.9.0.5-10.9.0.40"];
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.4" });
  });
});

test("200 workloads are planned in a moment, and a /8 costs what a /20 does", () => {
  const took = ["10.0.0.0/20", "11.0.0.0/8"].map((subnet) => {
    const many = new PlannedSubnets();
    many.subnet("blue", { subnet });
    for (let at = 0; at < 200; at++) many.applications.want(`w${at}`, `u${at}`, { count: 11 });
    const beganMs = performance.now();
    many.step();
    expect(Object.keys(many.division())).toHaveLength(200);
    return performance.now() - beganMs;
  });
  expect(Math.max(...took)).toBeLessThan(5_000);
});

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

test("two versions of a workload that name the same Subnet make one pool", () => {
  world.applications.want("a", "u1", { count: 5 }, { count: 2, isCurrent: false });
  world.step();
  expect([...world.pools.values()].map(({ spec }) => spec.ips)).toEqual([["10.9.0.8-10.9.0.12"]]);
});

test("a pool in deletion is written when more is reserved for it than it has: it cannot get that any more", () => {
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

beforeEach(() => {
  world = new PlannedSubnets();
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

  test("that of one of another namespace with its UID, even if both would get the same name", () => {
    world.applications.want("x-web", "u1", { count: 2 });
    wantToo({ namespace: "shop-x", name: "web" });
    world.step();
    expect(owners("namespace")).toEqual(["shop", "shop-x"]);
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
  const grow = (count: number) => {
    world.applications.want("web", "u1", { count });
    const lacks = world.step().shortfalls.map(({ message }) => message.replace(/^.*: /, ""));
    return [world.division()["web eth0 blue"]?.split(" ").length, ...lacks];
  };
  const scattered = "a pool has at most 1024 ranges, and what is free lies scattered";
  expect(grow(1_000)).toEqual([1_000]);
  expect(grow(1_500)).toEqual([1_024, scattered]);
  expect(grow(1_024)).toEqual([1_024]);
  // What lies beside its last range needs no other one.
  world.byHand = world.byHand.filter((address) => address !== "10.0.8.0");
  expect(grow(1_026)).toEqual([1_024]);
  expect(world.division()["web eth0 blue"]).toMatch(/ 10\.0\.7\.255-10\.0\.8\.1$/);
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
