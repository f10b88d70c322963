/**
 * Many pods whose ADDs come a sandbox's time after the binding: nearly all find their address, each costs one create,
 * and no other call.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Added, type AgentNode, BERTH_PLUGIN } from "../lab/cluster/agent-node.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { inParallel } from "../lab/parallel.ts";
import { percentile } from "../lab/statistics.ts";
import { Seeded } from "../world/seeded.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PODS = 200;
const AT_ONCE = 20;
/** As many pods as a node has at most. */
const BURST = 110;
/** Between the binding and the ADD, as a kubelet and a runtime need for a sandbox. */
const DELAY_MS = { least: 50, most: 300 };

let world: World;
const chance = new Seeded(20_261_120);

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    settings: { allocationCooldown: "30s" },
    pools: [{ name: "blue", subnet: "10.6.0.0/16" }],
  });
  await followWorld(world, { endsWithPods: true });
});
afterAll(() => world?.stop());

/** Bound now, and added when its sandbox is there. */
async function add(node: AgentNode, name: string): Promise<Added> {
  const pod = await world.bindPod({ name, node: node.name });
  await sleep(DELAY_MS.least + chance.below(DELAY_MS.most - DELAY_MS.least));
  return node.add(pod);
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);
const median = (all: readonly Added[]): number =>
  percentile(
    all.map(({ tookMs }) => tookMs),
    0.5,
  );

it(`${PODS} pods on a node that claims ahead, and as many on one that does not`, async () => {
  const ahead = await world.openAgent("ahead", { plugin: BERTH_PLUGIN });
  const alone = await world.openAgent("alone");
  const before = new Map([ahead, alone].map((node) => [node, node.api.calls.length]));
  // Both kinds of node take turns, so that neither has the quieter machine.
  const added = await inParallel(numbers(2 * PODS), AT_ONCE, (number) =>
    add(number % 2 === 0 ? ahead : alone, `web-${number}`),
  );
  expect(new Set(added.map(({ addresses }) => addresses)).size).toBe(2 * PODS);
  const { adds, used } = ahead.stats;
  expect(adds).toBe(PODS);
  // Wide room: a busy machine may show a pod later than its ADD comes.
  expect(used / adds).toBeGreaterThanOrEqual(0.8);
  const [early, late] = [0, 1].map((rest) => added.filter((_, number) => number % 2 === rest));
  expect(median(early ?? [])).toBeLessThan(median(late ?? []));
  expect(alone.stats).toMatchObject({ wanted: 0, used: 0 });
  for (const node of [ahead, alone]) {
    const calls = node.api.calls.slice(before.get(node));
    expect(calls.filter((call) => call === "POST ipallocations")).toHaveLength(PODS);
    expect(calls.filter((call) => /^(?:PUT|PATCH|DELETE) |^GET \w+$/.test(call))).toEqual([]);
  }
  expect(await world.allocations()).toHaveLength(2 * PODS);
});

it(`${BURST} pods bound at once`, async () => {
  const node = await world.openAgent("burst", { plugin: BERTH_PLUGIN });
  const added = await Promise.all(numbers(BURST).map((number) => add(node, `burst-${number}`)));
  expect(new Set(added.map(({ addresses }) => addresses)).size).toBe(BURST);
  const { failed, discarded, withdrawn } = node.stats;
  expect(failed + discarded + withdrawn).toBe(0);
  expect(node.api.calls.filter((call) => call === "POST ipallocations")).toHaveLength(BURST);
});
