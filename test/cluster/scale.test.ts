/** Five agents and two hundred pods on a real API server: the scenarios of test/long/cluster in small, each write checked. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { CniError, ErrorCode } from "../../host/cni/error.ts";
import { callsPer, printTable, timesOf } from "../lab/scale/figures.ts";
import {
  attachAll,
  countReasons,
  createPods,
  endPods,
  livePods,
  measureClaims,
  sumPrefetches,
} from "../lab/scale/scenarios.ts";
import { endSets, rollSet, startSet } from "../lab/scale/stateful-sets.ts";
import { openWorld, type World } from "../lab/scale/world.ts";
import { Seeded } from "../world/seeded.ts";

const SEED = 7;
const EMPTY_MS = 15_000;

let world: World;

beforeAll(async () => {
  world = await openWorld({
    nodes: 5,
    hasNetwork: true,
    pools: { wide: { subnet: "10.128.0.0/16" }, exact: { subnet: "10.129.0.0/24", ips: "10.129.0.10-10.129.0.49" } },
  });
});

afterAll(() => world?.[Symbol.asyncDispose]());

it("pods come and go; each has had its address to itself, and all come back", async () => {
  const { addMs, delMs, use } = await livePods(world, { count: 100, perSecond: 50, prefix: "life" });
  expect(world.history.checker.breaches).toEqual([]);
  expect(world.history.checker.writes).toBeGreaterThanOrEqual(200);
  const { adds, used } = sumPrefetches(world);
  expect(adds).toBe(100);
  expect(used).toBeGreaterThanOrEqual(90);
  printTable("100 pods, 5 agents", [
    ["ADD", timesOf(addMs)],
    ["DEL", timesOf(delMs)],
    ["requests per pod", callsPer(use, 100)],
  ]);
});

it("agents claim beside bare creates", async () => {
  const pods = await createPods(world, 60);
  const { attached, use, claimsPerSecond, barePerSecond } = await measureClaims(world, pods, { batch: 20, atOnce: 8 });
  expect(attached).toHaveLength(60);
  expect(use.calls.get("GET ipallocations (list)") ?? 0).toBe(0);
  expect(barePerSecond).toBeGreaterThan(0);
  expect(claimsPerSecond).toBeGreaterThan(0);
  await endPods(world, attached);
  await world.empty(EMPTY_MS);
  expect(world.history.checker.breaches).toEqual([]);
});

it("a pool that fits exactly is used to its last address, and the next pod is refused", async () => {
  const pods = await createPods(world, 40, "exact", "fit");
  const { attached, refused } = await attachAll(world, pods);
  expect(countReasons(refused)).toEqual({});
  expect(new Set(attached.flatMap(({ attachments }) => attachments.map(({ name }) => name))).size).toBe(40);
  const more = await attachAll(world, await createPods(world, 1, "exact", "more"));
  expect(more.refused).toHaveLength(1);
  const [refusal] = more.refused;
  expect(refusal).toBeInstanceOf(CniError);
  expect(refusal).toMatchObject({ code: ErrorCode.PoolExhausted });
  await endPods(world, attached);
  await world.empty(EMPTY_MS);
  expect(world.history.checker.breaches).toEqual([]);
});

it("the pods of StatefulSets that are rolled at once keep their addresses, on whichever node", async () => {
  const chance = new Seeded(SEED);
  const schedule = () => chance.pick(world.nodes);
  const sets = await Promise.all([0, 1, 2, 3].map((index) => startSet(world, `set-${index}`, 5, schedule)));
  const moved = await Promise.all(sets.map((set) => rollSet(world, set, schedule)));
  expect(moved).toEqual([0, 0, 0, 0]);
  expect(world.history.checker.breaches).toEqual([]);
  await endSets(world, sets);
  expect(world.history.checker.breaches).toEqual([]);
});
