/** What a plan says beside the pools: who has too much, waits, grows, or is short, and whose end is asked for. */
import { beforeEach, describe, expect, test } from "vitest";
import type { PoolOwner } from "../../../../host/resources/fields/subnet-pool.ts";
import type { DemandOptions } from "../../../fakes/scripted-pool-owners.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

let world: PlannedSubnets;

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/24" });
});

describe("a network is written", () => {
  test("without a pool: its Subnets have a status all the same", () => {
    const { networks } = world.step();
    expect(networks).toMatchObject([{ targets: [], grows: false, subnets: [{ total: 254n }] }]);
  });

  test("as growing when one of its pools grows", () => {
    world.applications.want("a", "u1", { count: 2 });
    expect(world.step().networks[0]?.grows).toBe(true);
    world.applications.want("b", "u2", { count: 2 });
    expect(world.step().networks[0]?.grows).toBe(true);
    expect(world.step().networks[0]?.grows).toBe(false);
  });

  test("with what is reserved for a pool that goes, until it is gone", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    world.applications.end("u1");
    world.liveness.set("shop/u1", "gone");
    const { ask, remove, networks } = world.step();
    expect([ask, remove.length]).toEqual([[], 1]);
    expect(networks[0]?.targets).toMatchObject([
      { isChanged: false, spans: [{ first: 0x0a090002n, last: 0x0a090003n }] },
    ]);
    expect(world.subnets.get("blue")?.status).toMatchObject({ pools: [{ ips: ["10.9.0.2-10.9.0.3"] }] });
  });

  test("without a pool in a Subnet that has nothing to give: all its addresses are in use", () => {
    world.subnet("blue", { subnet: "10.9.0.0/30" });
    world.subnet("green", { subnet: "10.8.0.0/30" });
    world.held.add("10.8.0.1").add("10.8.0.2");
    world.applications.want("a", "u1", { count: 3, subnets: ["blue", "green"] });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.1-10.9.0.2" });
  });
});

describe("a surplus", () => {
  beforeEach(() => {
    world.applications.want("a", "u1", { count: 3 });
    world.step();
  });

  test("is none of a pool that has what it should", () => {
    const { excess, postponed, waiting } = world.step();
    expect([excess.size, postponed.size, waiting.size]).toEqual([0, 0, 0]);
  });

  test("goes back after five seconds, and then nothing is waited for", () => {
    world.excessMs = 5_000;
    world.applications.want("a", "u1", { count: 1 });
    const { excess, postponed, waiting } = world.step();
    expect([excess.size, postponed.size, waiting.size]).toEqual([1, 0, 0]);
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4" });
  });

  test.each([
    ["of the same network, beside one that does not exist", ["red", "blue"], "10.9.0.4"],
    ["of another network", ["tiny"], "10.9.0.4-10.9.0.6"],
  ])("goes back at once only for a workload that is short %s", (_, subnets, left) => {
    world.excessMs = 0;
    world.subnet("blue", { subnet: "10.9.0.0/24", ips: ["10.9.0.4-10.9.0.6"] });
    world.subnet("tiny", { subnet: "10.8.0.0/30", ips: [] });
    world.applications.want("a", "u1", { count: 1 });
    world.applications.want("db", "u2", { count: 2, subnets });
    world.step();
    expect(world.division()["a eth0 blue"]).toBe(left);
  });

  test("of a pool whose Subnet is gone is kept for a while although another workload is short", () => {
    world.excessMs = 0;
    world.subnets.delete("blue");
    world.applications.want("a", "u1", { count: 1 });
    world.applications.want("db", "u2", { count: 2, subnets: ["red"] });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.4-10.9.0.6" });
  });

  test("is all that a workload has which asks no more; it waits for what pods hold", () => {
    world.held.add("10.9.0.4");
    world.applications.want("a", "u1");
    world.liveness.set("shop/u1", "alive");
    const [name = ""] = world.pools.keys();
    const { ask, excess, waiting } = world.step();
    expect([ask, [...excess], [...waiting]]).toEqual([[], [`uid-${name}`], [name]]);
    expect(world.generated("a")).toMatchObject({ wanted: 0, reason: "the workload no longer names the Subnet" });
  });
});

describe("an address that a pod of another pool has", () => {
  beforeEach(() => {
    world.subnet("blue", { subnet: "10.9.0.0/24", ips: ["10.9.0.1-10.9.0.3"] });
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const [only] = world.pools.keys();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
    world.held.add("10.9.0.2");
    world.strays.set("10.9.0.2", `former-${only}`);
  });

  test("leaves the pool, which gets another one", () => {
    expect(world.step().shortfalls).toEqual([]);
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.1 10.9.0.3" });
    expect(world.subnets.get("blue")?.status).toMatchObject({ pools: [{ ips: ["10.9.0.1", "10.9.0.3"] }] });
  });

  test("is missing as long as there is no other, and comes when it is free", () => {
    world.applications.want("a", "u1", { count: 3 });
    expect(world.step().shortfalls).toMatchObject([{ reason: "SubnetFull", has: 2 }]);
    world.held.clear();
    world.strays.clear();
    expect(world.step().shortfalls).toEqual([]);
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.1-10.9.0.3" });
  });

  test("stays in the pool that gave it, and is not the same number of IPv6", () => {
    const [name = ""] = world.pools.keys();
    world.strays.clear();
    world.strays.set("10.9.0.2", name).set("::a09:2", "former");
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
  });

  test("stays in a pool whose Subnet is gone", () => {
    world.subnets.delete("blue");
    world.subnet("green", { subnet: "10.9.0.0/24" });
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.3" });
  });

  test("stays in a pool of another address space", () => {
    world.held.clear();
    world.subnet("lab", { subnet: "10.9.0.0/24", addressSpace: "lab" });
    world.applications.want("b", "u2", { count: 2, subnets: ["lab"] });
    world.step();
    expect(world.division()).toMatchObject({ "b eth0 lab": "10.9.0.2-10.9.0.3" });
    world.step();
    expect(world.division()).toMatchObject({ "b eth0 lab": "10.9.0.2-10.9.0.3" });
  });
});

describe("a limit", () => {
  const reasons = () => world.step().shortfalls.map(({ reason, has }) => `${reason} ${has}`);

  test("of a namespace counts what its pools have already, and what they get, once", () => {
    world.maxPerNamespace = 6;
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    world.applications.want("a", "u1", { count: 4 });
    world.applications.want("b", "u2", { count: 3 });
    expect(reasons()).toEqual(["NamespaceLimit 2"]);
    expect(world.division()).toMatchObject({ "a eth0 blue": "10.9.0.2-10.9.0.5" });
    expect(reasons()).toEqual(["NamespaceLimit 2"]);
  });

  test("of a namespace counts what a second pool for the same gives back", () => {
    world.maxPerNamespace = 5;
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const [first] = world.pools.values();
    world.pool("z", { ...first?.spec, ips: ["10.9.0.20"] });
    const blue = world.subnets.get("blue");
    const [own] = world.pools.keys();
    const entries = [
      { name: own, ips: ["10.9.0.2-10.9.0.3"] },
      { name: "z", ips: ["10.9.0.20"] },
    ];
    if (blue !== undefined) blue.status = { pools: entries };
    world.applications.want("b", "u2", { count: 3 });
    expect(reasons()).toEqual([]);
    expect(world.division()).toMatchObject({ "b eth0 blue": "10.9.0.4-10.9.0.6" });
  });

  test("of a pool counts what it has already", () => {
    world.maxPoolSize = 3;
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    world.applications.want("a", "u1", { count: 6 });
    expect(reasons()).toEqual(["PoolTooLarge 3"]);
    expect(world.division()).toEqual({ "a eth0 blue": "10.9.0.2-10.9.0.4" });
  });

  test("that is just kept is not why a full Subnet gives less", () => {
    world.subnet("blue", { subnet: "10.9.0.0/24", ips: ["10.9.0.1-10.9.0.3"] });
    world.maxPoolSize = 4;
    world.maxPerNamespace = 4;
    world.applications.want("a", "u1", { count: 4 });
    expect(reasons()).toEqual(["SubnetFull 3"]);
  });
});

test("a shortfall tells how many pools a Subnet has, each once, and not more than three Subnets", () => {
  const others = ["r1", "r2", "r3", "r4"];
  world.subnet("blue", { subnet: "10.9.0.0/30" });
  world.applications.want("a", "u1", { count: 1 });
  world.applications.want("b", "u2", { count: 2, subnets: ["blue", ...others] });
  const message = () => world.step().shortfalls.map((each) => each.message.replace(/^.* has 1: /, ""));
  const has = 'Subnet "blue" has 0 free of 2 addresses, and 2 pools';
  const rest = ["r1", "r2"].map((name) => `Subnet "${name}" does not exist or cannot be used`).join("; ");
  expect(message()).toEqual([`${has}; ${rest}; and 2 more Subnets`]);
  expect(message()).toEqual([`${has}; ${rest}; and 2 more Subnets`]);
});

describe("a shortfall counts no pool in a Subnet", () => {
  const pools = () => world.step().shortfalls.map(({ message }) => message.match(/Subnet "green" .*/)?.[0]);
  beforeEach(() => world.subnet("green", { subnet: "10.8.0.0/30" }));

  test("of a workload that has enough of another one", () => {
    world.applications.want("a", "u1", { count: 1, subnets: ["blue", "green"] });
    world.applications.want("b", "u2", { count: 3, subnets: ["green"] });
    expect(pools()).toEqual(['Subnet "green" has 0 free of 2 addresses, and 1 pool']);
  });

  test("of a workload for which it has nothing left", () => {
    world.subnet("blue", { subnet: "10.9.0.0/30" });
    world.applications.want("a", "u1", { count: 2, subnets: ["green"] });
    world.applications.want("b", "u2", { count: 3, subnets: ["blue", "green"] });
    expect(pools()).toEqual(['Subnet "green" has 0 free of 2 addresses, and 1 pool']);
  });
});

test("a shortfall of one address, in a Subnet with one pool", () => {
  world.subnet("blue", { subnet: "10.9.0.0/30", ips: [] });
  world.applications.want("a", "u1", { count: 1, reason: "1 replica" });
  expect(world.step().shortfalls[0]?.message).toBe(
    'Wants 1 address (1 replica) for eth0, IPv4, and has 0: Subnet "blue" has 0 free of 0 addresses, and 1 pool',
  );
});

test("of a Subnet that is closed to the namespace and one that does not exist, the first is the reason", () => {
  world.subnet("blue", { subnet: "10.9.0.0/24", namespaceName: ["bank"] });
  world.applications.want("a", "u1", { count: 1, subnets: ["blue", "red"] });
  expect(world.step().shortfalls).toMatchObject([{ reason: "SubnetRefused" }]);
});

describe("the first pool of a workload", () => {
  const wanted = () =>
    Object.fromEntries(
      [...world.pools.values()].map(({ spec }) => {
        const { subnet, wanted } = spec.generated as { subnet: string; wanted: number };
        return [subnet, wanted];
      }),
    );

  test("wants what the others do not have, also when its Subnet came after theirs", () => {
    world.subnets.delete("blue");
    world.subnet("green", { subnet: "10.8.0.0/30" });
    world.applications.want("a", "u1", { count: 5, subnets: ["blue", "green"] });
    world.step();
    expect(wanted()).toEqual({ green: 5 });
    world.subnet("blue", { subnet: "10.9.0.0/24", ips: ["10.9.0.2"] });
    world.step();
    expect(wanted()).toEqual({ blue: 3, green: 2 });
  });

  test("stays empty while a former version of it has no other one", () => {
    world.subnet("blue", { subnet: "10.9.0.0/30", ips: [] });
    world.subnet("green", { subnet: "10.8.0.0/24" });
    const former = { count: 1, isCurrent: false };
    world.applications.want("a", "u1", { count: 2, subnets: ["green", "blue"] }, former);
    world.step();
    world.step();
    expect(world.division()).toEqual({ "a eth0 blue": "", "a eth0 green": "10.8.0.2-10.8.0.3" });
  });

  test("is the first by name of two that are equally large", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    const [[own = "", pool] = []] = world.pools;
    for (const name of ["a-first", "z-last"]) {
      world.pool(name, { ...pool?.spec, ips: ["10.9.0.20-10.9.0.21"] });
      world.step();
      world.finish();
      expect([...world.pools.keys()]).toEqual([name === "a-first" ? name : own]);
      world.pools.clear();
      world.subnet("blue", { subnet: "10.9.0.0/24" });
      world.pool(own, { ...pool?.spec });
      world.step();
    }
  });
});

describe("a later workload of the name takes over", () => {
  const later = () => {
    world.applications.end("u1");
    world.liveness.set("shop/u1", "gone");
    world.applications.want("a", "u2", { count: 2, reclaim: false }, { count: 1, reclaim: false, isCurrent: false });
    world.step();
    return [...world.pools.values()].map(
      ({ spec }) => (spec.generated as { application: { uid: string } }).application.uid,
    );
  };

  test("the pool that was to stay, for all its versions", () => {
    world.applications.want("a", "u1", { count: 2, reclaim: false });
    world.step();
    expect(later()).toEqual(["u2"]);
  });

  test("the pool that no other one uses, although pods of an earlier workload of the name have one, too", () => {
    world.excessMs = 0;
    world.applications.want("a", "u1", { count: 2, reclaim: false });
    world.step();
    const [[name, pool] = []] = world.pools;
    world.liveness.set("shop/u1", "alive").set("shop/u0", "alive");
    world.applications.end("u1");
    world.applications.want("a", "u0", { count: 2, reclaim: false });
    world.step();
    world.pools.delete(name ?? "");
    if (name !== undefined && pool !== undefined) world.pools.set(name, pool);
    expect(later()).toEqual(["u0", "u2"]);
  });

  test("one of two pools that were to stay, another one the other", () => {
    world.excessMs = 0;
    for (const uid of ["u0", "u1"]) {
      world.applications.want("a", uid, { count: 2, reclaim: false });
      world.step();
      world.applications.end(uid);
      world.liveness.set(`shop/${uid}`, "alive");
    }
    world.liveness.set("shop/u0", "gone");
    world.applications.want("a", "u3", { count: 2, reclaim: false });
    expect(later().sort()).toEqual(["u2", "u3"]);
  });

  test("no pool that goes with its workload", () => {
    world.applications.want("a", "u1", { count: 2 });
    world.step();
    expect(later()).toEqual(["u1", "u2"]);
  });

  test("no pool that is being deleted", () => {
    world.applications.want("a", "u1", { count: 2, reclaim: false });
    world.step();
    for (const { metadata } of world.pools.values()) metadata.deletionTimestamp = "2026-11-20T04:00:00Z";
    expect(later()).toEqual(["u1", "u2"]);
  });

  test.each<[what: string, application: Partial<PoolOwner>, options: DemandOptions]>([
    ["name", { name: "b" }, {}],
    ["namespace", { namespace: "bank" }, {}],
    ["kind", { kind: "StatefulSet" }, {}],
    ["group", { apiVersion: "apps.other.io/v1" }, {}],
    ["NIC", {}, { ifName: "net1" }],
    ["Subnet", {}, { subnets: ["green"] }],
  ])("no pool of another %s", (_, application, options) => {
    world.subnet("green", { subnet: "10.9.0.0/24", ips: ["10.9.0.100-10.9.0.200"] });
    world.applications.want("a", "u1", { count: 2, reclaim: false });
    world.step();
    world.applications.end("u1");
    world.liveness.set("shop/u1", "gone");
    world.applications.want("a", "u2", { count: 2, ...options });
    const { demands, faults } = world.applications.demands();
    const changed = demands.map((demand) => ({ ...demand, application: { ...demand.application, ...application } }));
    world.applications.demands = () => ({ demands: changed, faults });
    world.step();
    const uids = [...world.pools.values()].map(
      ({ spec }) => (spec.generated as { application: PoolOwner }).application.uid,
    );
    expect(uids).toEqual(["u1", "u2"]);
  });

  test.each([
    ["apps/v1beta2", "apps/v1"],
    ["v1beta3", "v1"],
  ])("a pool of another version of its group's kind: of %s for %s", (before, now) => {
    world.applications.want("a", "u1", { count: 2, reclaim: false });
    world.step();
    const [pool] = world.pools.values();
    const generated = pool?.spec.generated as { application: PoolOwner };
    generated.application = { ...generated.application, apiVersion: before };
    const read = world.applications.demands;
    world.applications.demands = () => {
      const { demands, faults } = read.call(world.applications);
      const own = demands.map((each) => ({ ...each, application: { ...each.application, apiVersion: now } }));
      return { demands: own, faults };
    };
    expect(later()).toEqual(["u2"]);
  });
});

test("a pool follows the gateway and the routes of its Subnet", () => {
  world.applications.want("a", "u1", { count: 2 });
  world.step();
  const way = () => [...world.pools.values()].map(({ spec }) => [spec.gateway, spec.routes]);
  const routes = [{ dst: "10.0.0.0/8", gw: "10.9.0.254" }];
  world.subnet("blue", { subnet: "10.9.0.0/24", gateway: "10.9.0.1" });
  world.step();
  expect(way()).toEqual([["10.9.0.1", []]]);
  world.subnet("blue", { subnet: "10.9.0.0/24", gateway: "10.9.0.1", routes });
  world.step();
  expect(way()).toEqual([["10.9.0.1", routes]]);
  routes.splice(0, 1, { dst: "10.0.0.0/8", gw: "10.9.0.253" });
  world.subnet("blue", { subnet: "10.9.0.0/24", gateway: "10.9.0.1", routes });
  world.step();
  expect(way()).toEqual([["10.9.0.1", [{ dst: "10.0.0.0/8", gw: "10.9.0.253" }]]]);
  expect(world.step().networks[0]?.targets).toMatchObject([{ isChanged: false }]);
  world.subnet("blue", { subnet: "10.9.0.0/24", routes });
  world.step();
  expect(way()).toEqual([[undefined, routes]]);
});
