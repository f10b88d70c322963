/** Which writes of a plan are made now, of a cluster in which ten are made at once. */
import { beforeEach, expect, it } from "vitest";
import {
  POOL_EVENTS_PER_SECOND,
  POOL_WRITES_BATCH_MS,
  POOL_WRITES_SAVED_MS,
  PoolWrites,
} from "../../../../host/controller/pool-writes.ts";
import { planSubnets } from "../../../../host/controller/subnets/plan/plan-subnets.ts";
import { WriteTurns } from "../../../../host/controller/subnets/write-turns.ts";
import type { PoolDemand } from "../../../../host/ipam/subnet-pools.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";

const AT_ONCE = 10;

let world: PlannedSubnets;
let turns: WriteTurns;
let nowMs: number;
let writes: PoolWrites;
let demands: PoolDemand[];

beforeEach(() => {
  world = new PlannedSubnets();
  world.subnet("blue", { subnet: "10.9.0.0/16" });
  world.subnet("green", { subnet: "fd00:9::/64" });
  turns = new WriteTurns();
  nowMs = 0;
  const nodes = (POOL_EVENTS_PER_SECOND * POOL_WRITES_SAVED_MS) / 1_000 / AT_ONCE;
  writes = new PoolWrites({ nodes: () => nodes, nowMs: () => nowMs });
  demands = [];
});

function want(namespace: string, name: string, options: Partial<PoolDemand> = {}): void {
  const application = { apiVersion: "apps/v1", kind: "Deployment", namespace, name, uid: `${namespace}-${name}` };
  demands = demands.filter(({ application: { uid } }) => options.family !== undefined || uid !== application.uid);
  demands.push({
    ...{ application, ifName: "eth0", family: 4, subnets: ["blue"], count: 3, reason: "2 replicas and 1 more" },
    ...{ reclaim: true, isCurrent: true, ...options },
  });
}

/** Plans, and carries out what is admitted. Returns which pools it writes, creates and deletes, by workload. */
function round(passedMs = POOL_WRITES_SAVED_MS) {
  nowMs += passedMs;
  const plan = planSubnets({ ...world.view(), demands });
  const admitted = turns.admit(plan, writes);
  world.carryOut({ ...plan, networks: admitted.networks, remove: admitted.remove });
  const targets = admitted.networks.flatMap((network) => network.targets);
  const nameOf = ({ generated }: { generated: { application: { namespace: string; name: string } } }) =>
    `${generated.application.namespace}/${generated.application.name}`;
  return {
    created: targets.filter(({ now }) => now === undefined).map(nameOf),
    changed: targets.filter(({ now, isChanged }) => now !== undefined && isChanged).map(nameOf),
    removed: admitted.remove.map(nameOf),
    grows: admitted.networks.map(({ grows }) => grows),
    ...{ postponed: admitted.postponed, waiting: Object.fromEntries(admitted.waiting) },
  };
}

it("all writes are made at once while there are few", () => {
  for (const name of ["a", "b", "c", "d", "e"]) want("shop", name);
  expect(round()).toMatchObject({
    created: ["shop/a", "shop/b", "shop/c", "shop/d", "shop/e"],
    postponed: 0,
    waiting: {},
  });
  expect(round(0)).toMatchObject({ created: [], changed: [], removed: [], postponed: 0, waiting: {} });
});

it("a roll-out is made in batches, and says how many new pools wait", () => {
  for (let index = 10; index < 30; index++) want("shop", `w${index}`);
  const first = round();
  expect(first.created).toHaveLength(AT_ONCE / 2);
  expect(first).toMatchObject({ postponed: 30, waiting: { blue: 15 } });
  // Nothing is begun before a batch may be made.
  expect(round(POOL_WRITES_BATCH_MS - 10)).toMatchObject({ created: [], postponed: 30, waiting: { blue: 15 } });
  expect(round(10).created).toHaveLength(3);
  let left = 12;
  for (let turn = 0; turn < 10 && left > 0; turn++) left -= round().created.length;
  expect([left, world.pools.size]).toEqual([0, 20]);
});

it("a workload's pools of all families are made together", () => {
  for (let index = 10; index < 20; index++) {
    want("shop", `w${index}`, { family: 4 });
    want("shop", `w${index}`, { family: 6, subnets: ["green"] });
  }
  const { created, waiting } = round();
  expect(created.toSorted()).toEqual(["shop/w10", "shop/w10", "shop/w11", "shop/w11", "shop/w12", "shop/w12"]);
  expect(waiting).toEqual({ blue: 7, green: 7 });
});

it("a roll-out in one namespace does not keep the workloads of others waiting", () => {
  for (let index = 10; index < 60; index++) want("bank", `w${index}`);
  round();
  want("shop", "one");
  want("zoo", "one");
  const { created } = round();
  expect(created).toContain("shop/one");
  expect(created).toContain("zoo/one");
});

it("namespaces take turns although each round makes fewer writes than there are namespaces", () => {
  const namespaces = Array.from({ length: 15 }, (_, index) => `ns${index + 10}`);
  for (const namespace of namespaces) for (let index = 0; index < 9; index++) want(namespace, `w${index}`);
  const served = [round(), round(), round()].flatMap(({ created }) => created.map((name) => name.split("/")[0]));
  expect(served.toSorted()).toEqual(namespaces);
});

it("a pool that exists gets more addresses before new pools are made, also of namespaces that have had no turn", () => {
  want("bank", "old");
  for (let index = 10; index < 30; index++) want(`ns${index}`, "new");
  expect(round().created).toContain("bank/old");
  want("bank", "old", { count: 9 });
  expect(round().changed).toEqual(["bank/old"]);
  expect(round()).toMatchObject({ changed: [], created: { length: AT_ONCE / 2 } });
});

it("a Subnet reserves for those whose turn has come, and for no others", () => {
  for (let index = 10; index < 30; index++) want("shop", `w${index}`);
  // The other Subnet has nothing to give.
  expect(round()).toMatchObject({ created: { length: AT_ONCE / 2 }, grows: [true, false] });
  expect(round(0)).toMatchObject({ created: [], postponed: 30, grows: [false, false] });
});

it("a pool that only gets another reason or fewer addresses is not before those that need more", () => {
  const names = Array.from({ length: 12 }, (_, index) => `w${index + 10}`);
  for (const name of names) want("shop", name);
  for (let turn = 0; turn < 5; turn++) round();
  for (const name of names) want("shop", name, { reason: "3 replicas", count: name === "w10" ? 2 : 3 });
  want("shop", "w21", { count: 4 });
  const { changed, postponed, grows } = round();
  expect([changed, postponed]).toEqual([expect.arrayContaining(["shop/w21"]), 2]);
  expect(grows).toEqual([true, false]);
  expect(round()).toMatchObject({ changed: { length: 2 }, grows: [false, false] });
});

it("turns are forgotten when nothing waits", () => {
  want("bank", "old");
  expect(round()).toMatchObject({ created: ["bank/old"], postponed: 0 });
  for (const namespace of ["bank", "shop"]) for (let index = 10; index < 20; index++) want(namespace, `w${index}`);
  expect(
    round()
      .created.map((name) => name.split("/")[0])
      .toSorted(),
  ).toEqual(["bank", "bank", "bank", "shop", "shop"]);
});

it("what waits of a pool that exists stays as it is, and reserved", () => {
  for (let index = 10; index < 15; index++) want("shop", `w${index}`);
  round();
  round();
  round();
  const before = structuredClone(world.pools);
  for (let index = 10; index < 15; index++) want("shop", `w${index}`, { count: 9 });
  writes.spend(AT_ONCE);
  nowMs -= POOL_WRITES_SAVED_MS;
  const plan = planSubnets({ ...world.view(), demands });
  const { networks, postponed, waiting } = turns.admit(plan, writes);
  expect(postponed).toBe(5);
  expect([...waiting]).toEqual([]);
  expect(networks.map(({ grows }) => grows)).toEqual([false, false]);
  expect(networks.flatMap(({ targets }) => targets).map(({ isChanged }) => isChanged)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
  expect(world.pools).toEqual(before);
});

it("pools of workloads that are gone are deleted in turns, too", () => {
  for (let index = 10; index < 35; index++) want("shop", `w${index}`);
  for (let turn = 0; turn < 10; turn++) round();
  for (const { application } of demands) world.liveness.set(`${application.namespace}/${application.uid}`, "gone");
  demands = [];
  const { removed, postponed } = round();
  expect([removed.length, postponed]).toEqual([AT_ONCE, 15]);
});

it("a pool with addresses that its Subnet's status does not list is written at once", () => {
  for (let index = 10; index < 30; index++) want("shop", `w${index}`);
  for (let turn = 0; turn < 10; turn++) round();
  const blue = world.subnets.get("blue") ?? expect.fail();
  blue.status = {};
  const { changed } = round();
  expect(changed).toHaveLength(20);
  // All of them have been paid for.
  expect(writes.waitMs(1)).toBeGreaterThan(POOL_WRITES_SAVED_MS);
});
