import { beforeEach, describe, expect, test } from "vitest";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

describe("the end of a workload", () => {
  beforeEach(() => world.applications.want("a", "u1", { count: 2 }));

  test("is asked for before anything is done", () => {
    world.step();
    world.applications.end("u1");
    expect(world.step().ask).toMatchObject([{ uid: "u1" }]);
    expect(Object.keys(world.division())).toHaveLength(1);
  });

  test("takes the pool with it", () => {
    world.step();
    world.applications.end("u1");
    world.liveness.set("shop/u1", "gone");
    world.step();
    expect(world.division()).toEqual({});
  });

  test("leaves it when it is to stay, and a later one of the same name takes it over", () => {
    world.applications.want("a", "u1", { count: 2, reclaim: false });
    world.step();
    world.applications.end("u1");
    world.liveness.set("shop/u1", "gone");
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
    world.applications.want("b", "u3", { count: 2 });
    world.applications.want("a", "u2", { count: 3, reclaim: false });
    world.step();
    expect(world.generated("a")).toMatchObject({ application: { uid: "u2" } });
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.4", "b eth0 blue": "10.9.0.6-10.9.0.7" });
  });

  test("is not decided while the API server does not answer", () => {
    world.step();
    world.applications.end("u1");
    world.liveness.set("shop/u1", "unknown");
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
  });

  test("one that lives and asks no more keeps what its pods have, until they go", () => {
    world.step();
    world.held.add("10.9.0.3");
    world.applications.want("a", "u1");
    world.liveness.set("shop/u1", "alive");
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.3" });
    world.held.clear();
    world.step();
    expect(world.division()).toEqual({});
  });

  test("another Subnet in its annotation: both pools, while the former one's pods are there", () => {
    world.step();
    world.subnet("green", { subnet: "10.8.0.0/24" });
    world.held.add("10.9.0.2").add("10.9.0.3");
    const former = { count: 2, isCurrent: false };
    world.applications.want("a", "u1", { count: 3, subnets: ["green"] }, former);
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3", "a eth0 green": "10.8.0.4-10.8.0.6" });
    world.held.delete("10.9.0.3");
    world.applications.want("a", "u1", { count: 3, subnets: ["green"] }, { ...former, count: 1 });
    world.step();
    expect(world.division()).toMatchObject({ "a eth0 blue": "10.9.0.2" });
    world.held.clear();
    world.liveness.set("shop/u1", "alive");
    world.applications.want("a", "u1", { count: 3, subnets: ["green"] });
    world.step();
    expect(world.division()).toEqual({ "a eth0 green": "10.8.0.4-10.8.0.6" });
  });
});

describe("what should not be", () => {
  test("a pool in deletion serves no pod; a new one has another name", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const [first] = [...world.pools.values()];
    if (first !== undefined) first.metadata.deletionTimestamp = "2026-11-20T04:00:00Z";
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4-10.9.0.5" });
    expect(world.pools.size).toBe(2);
  });

  test("a pool in deletion stays as it is, whatever becomes of its Subnet or of another pool with its addresses", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const [[name, pool] = ["", undefined]] = world.pools;
    world.pool("a-first", { ...pool?.spec });
    if (pool !== undefined) pool.metadata.deletionTimestamp = "2026-11-20T04:00:00Z";
    const pools = [name, "a-first"].map((each) => ({ name: each, ips: ["10.9.0.2-10.9.0.3"] }));
    world.subnet("blue", { subnet: "10.9.0.0/24", gateway: "10.9.0.1" });
    const blue = world.subnets.get("blue");
    if (blue !== undefined) blue.status = { pools };
    const { networks } = world.step();
    const target = networks[0]?.targets.find((each) => each.name === name);
    expect(target).toMatchObject({ isChanged: false, spans: [{ first: 0x0a090002n, last: 0x0a090003n }] });
  });

  test("a status that is lost is rebuilt before anything is given", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    delete world.subnets.get("blue")?.status;
    world.applications.want("b", "u2", { count: 2 });
    const { networks, shortfalls } = world.step();
    expect(shortfalls).toEqual([]);
    expect(networks[0]?.targets.map(({ isChanged, spans }) => [isChanged, spans.length])).toEqual([[true, 1]]);
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3", "b eth0 blue": "10.9.0.4-10.9.0.5" });
  });

  test.each(["first", "last"])("two pools with one address: the first by name keeps it, listed %s", (place) => {
    world.applications.want("a", "u1", { count: 2 });
    world.applications.want("b", "u2", { count: 2 });
    world.step();
    const pools = [...world.pools];
    world.pools.clear();
    for (const [name, pool] of place === "first" ? pools : pools.toReversed()) world.pools.set(name, pool);
    for (const { spec } of world.pools.values()) spec.ips = ["10.9.0.2-10.9.0.3"];
    delete world.subnets.get("blue")?.status;
    for (let step = 0; step < 3; step++) world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3", "b eth0 blue": "10.9.0.4-10.9.0.5" });
  });

  test("what a pod holds is not taken from a pool although its Subnet, as it is known, promises it to another one", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.applications.want("b", "u2", { count: 2 });
    world.step();
    const [, second = ""] = [...world.pools.keys()].sort();
    const stored = world.pools.get(second);
    world.held.add("10.9.0.2");
    if (stored !== undefined) stored.spec.ips = ["10.9.0.2", "10.9.0.4-10.9.0.5"];
    world.step();
    expect(world.division()).toMatchObject({ "b eth0 blue": expect.stringContaining("10.9.0.2") });
    world.held.clear();
    for (let step = 0; step < 3; step++) world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3", "b eth0 blue": "10.9.0.4-10.9.0.5" });
  });

  test("an address that a Subnet reserves for another pool goes from the one that has it", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.applications.want("b", "u2", { count: 2 });
    world.step();
    const [[first = ""] = [], [second = "", pool] = []] = world.pools;
    const blue = world.subnets.get("blue");
    const pools = [
      { name: first, ips: ["10.9.0.2-10.9.0.4"] },
      { name: second, ips: ["10.9.0.5"] },
    ];
    if (blue !== undefined) blue.status = { pools };
    expect(pool?.spec.ips).toEqual(["10.9.0.4-10.9.0.5"]);
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3", "b eth0 blue": "10.9.0.5" });
  });

  test("an address that a Subnet reserves for a pool that is not known yet goes to no other pool, even if it is reserved for that one, too", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const [name] = world.pools.keys();
    const entries = [
      { name, ips: ["10.9.0.2-10.9.0.5", "10.9.0.80"] },
      { name: "unseen", ips: ["10.9.0.4-10.9.0.7"] },
    ];
    const blue = world.subnets.get("blue");
    if (blue !== undefined) blue.status = { pools: entries };
    world.applications.want("a", "u1", { count: 4 });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3 10.9.0.8 10.9.0.80" });
  });

  test("what was reserved for a pool and never given is given to it first, and taken back when it is not wanted", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const name = [...world.pools.keys()][0];
    const blue = world.subnets.get("blue");
    if (blue !== undefined) blue.status = { pools: [{ name, ips: ["10.9.0.2-10.9.0.3", "10.9.0.80"] }] };
    expect(world.step().networks[0]?.targets).toMatchObject([{ isChanged: true }]);
    expect(world.subnets.get("blue")?.status).toMatchObject({ assigned: 2 });
    if (blue !== undefined) blue.status = { pools: [{ name, ips: ["10.9.0.2-10.9.0.3", "10.9.0.80"] }] };
    world.applications.want("a", "u1", { count: 3 });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3 10.9.0.80" });
  });

  test("Subnets of one network give no address twice", () => {
    world.subnet("more", { subnet: "10.9.0.0/24", ips: ["10.9.0.1-10.9.0.6"] });
    world.applications.want("a", "u1", { count: 3 });
    world.applications.want("b", "u2", { count: 3, subnets: ["more"] });
    const { networks } = world.step();
    expect(networks).toHaveLength(1);
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4-10.9.0.6", "b eth0 more": "10.9.0.1-10.9.0.3" });
  });

  test("a Subnet that is gone: its pools stay as they are, and no other one gives their addresses", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    world.subnets.delete("blue");
    world.subnet("new", { subnet: "10.9.0.0/24", ips: ["10.9.0.1-10.9.0.4"] });
    world.applications.want("b", "u2", { count: 4, subnets: ["new"] });
    const { networks } = world.step();
    expect(networks.find(({ subnets }) => subnets.length === 0)?.targets).toMatchObject([{ isChanged: false }]);
    expect(world.division()).toMatchObject({ "a eth0 blue": "10.9.0.2-10.9.0.3", "b eth0 new": "10.9.0.1 10.9.0.4" });
  });
});

describe("two pools for the same, as two controllers may have made them", () => {
  /** A copy of the workload's pool under a name that comes before or after its own. */
  const copy = (name: string, ips: string[]) => {
    const [pool] = [...world.pools.values()];
    world.pool(name, { ...pool?.spec, ips });
  };
  const pools = () => Object.fromEntries([...world.pools].map(([name, { spec }]) => [name, spec.ips]));

  beforeEach(() => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
  });

  test.each(["a-first", "z-last"])("the empty one goes, %s by name", (name) => {
    const before = pools();
    copy(name, []);
    world.step();
    world.finish();
    expect(pools()).toEqual(before);
    expect(world.step().remove).toEqual([]);
  });

  test.each(["a-first", "z-last"])(
    "the larger one goes on, %s by name, and the other one keeps what pods hold until they go",
    (name) => {
      copy(name, ["10.9.0.20-10.9.0.22"]);
      const [own = ""] = world.pools.keys();
      world.held.add("10.9.0.3");
      world.step();
      world.finish();
      expect(pools()).toEqual({ [own]: ["10.9.0.3"], [name]: ["10.9.0.20"] });
      world.held.clear();
      world.step();
      world.finish();
      world.step();
      const [left, ...others] = Object.values(world.division());
      expect(left).toMatch(/^10\.9\.0\.\d+-10\.9\.0\.\d+$/);
      expect(others).toEqual([]);
      expect(world.pools.size).toBe(1);
    },
  );
});
