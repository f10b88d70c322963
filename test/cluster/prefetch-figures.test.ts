/** The prefetch in figures: how many ADDs find their address, what that saves, and what it costs. Prints them. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AgentNode, BERTH_PLUGIN } from "../lab/cluster/agent-node.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

const PODS = 200;
const AT_ONCE = 20;
/** As many pods as a node has at most. */
const BURST = 110;
/** Between the binding and the ADD, as a kubelet and a runtime need for a sandbox. */
const DELAY_MS = { least: 50, most: 300 };
const SEED = 20_261_120;

let world: World;
let ahead: AgentNode;
let alone: AgentNode;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    settings: { allocationCooldown: "30s" },
    pools: [{ name: "blue", subnet: "10.6.0.0/16" }],
  });
  ahead = await world.openAgent("ahead", { plugin: BERTH_PLUGIN });
  alone = await world.openAgent("alone");
});
afterAll(() => world?.stop());

/** The same numbers for the same seed (mulberry32). */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    const again = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((again ^ (again >>> 14)) >>> 0) / 2 ** 32;
  };
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function medianOf(times: readonly number[]): number {
  return percentile(
    [...times].sort((a, b) => a - b),
    0.5,
  );
}

function describeTimes(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  return `p50 ${percentile(sorted, 0.5).toFixed(2)} ms, p99 ${percentile(sorted, 0.99).toFixed(2)} ms`;
}

it(`measured hit rate: ${PODS} pods whose ADD comes ${DELAY_MS.least} to ${DELAY_MS.most} ms after the binding`, async () => {
  const random = dice(SEED);
  // Both kinds of node take turns, so that neither has the quieter machine.
  const adds = Array.from({ length: 2 * PODS }, (_, index) => ({
    node: index % 2 === 0 ? ahead : alone,
    name: `web-${index}`,
    delayMs: DELAY_MS.least + random() * (DELAY_MS.most - DELAY_MS.least),
  }));
  const times = new Map<AgentNode, number[]>([
    [ahead, []],
    [alone, []],
  ]);
  const addresses = new Set<string>();
  const startedWith = new Map([ahead, alone].map((node) => [node, node.api.calls.length]));
  const worker = async (): Promise<void> => {
    for (let add = adds.shift(); add !== undefined; add = adds.shift()) {
      const { node, name, delayMs } = add;
      const pod = await world.bindPod({ name, node: node.name });
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      const added = await node.add(pod);
      times.get(node)?.push(added.tookMs);
      addresses.add(added.addresses);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));

  const stats = ahead.stats;
  const rate = stats.adds === 0 ? 0 : stats.used / stats.adds;
  const [withPrefetch = [], without = []] = [times.get(ahead), times.get(alone)];
  const callsOf = (node: AgentNode): readonly string[] => node.api.calls.slice(startedWith.get(node));
  const perPod = (node: AgentNode): string => {
    const calls = Map.groupBy(callsOf(node), (call) => call.split("/")[0]);
    return [...calls].map(([call, all]) => `${call} ${(all.length / PODS).toFixed(2)}`).join(", ");
  };
  console.log(
    [
      `prefetch, seed ${SEED}: ${stats.used} of ${stats.adds} ADDs found their address, hit rate ${(rate * 100).toFixed(1)} %`,
      `  waited ${stats.waited}, late ${stats.late}, unseen ${stats.unseen}, failed ${stats.failed}`,
      `  ADD with prefetch: ${describeTimes(withPrefetch)}; without: ${describeTimes(without)}`,
      `  calls of the API server per pod, with prefetch: ${perPod(ahead)}`,
      `  calls of the API server per pod, without: ${perPod(alone)}`,
    ].join("\n"),
  );
  expect(addresses.size).toBe(2 * PODS);
  expect(stats.adds).toBe(PODS);
  // Wide room: a busy machine may show a pod later than its ADD comes.
  expect(rate).toBeGreaterThanOrEqual(0.8);
  expect(medianOf(withPrefetch)).toBeLessThan(medianOf(without));
  expect(alone.stats).toMatchObject({ wanted: 0, used: 0 });
  const creates = (node: AgentNode): number => callsOf(node).filter((call) => call === "POST ipallocations").length;
  for (const node of [ahead, alone]) {
    expect(creates(node)).toBe(PODS);
    expect(callsOf(node).filter((call) => /^(?:PUT|PATCH|DELETE) |^GET \w+$/.test(call))).toEqual([]);
  }
  expect(await world.allocations()).toHaveLength(2 * PODS);
});

it(`${BURST} pods bound at once, their ADDs ${DELAY_MS.least} to ${DELAY_MS.most} ms later`, async () => {
  const node = await world.openAgent("burst", { plugin: BERTH_PLUGIN });
  const random = dice(SEED);
  const startMs = performance.now();
  const waits = Array.from({ length: BURST }, async (_, index) => {
    const pod = await world.bindPod({ name: `burst-${index}`, node: node.name });
    await new Promise((resolve) => setTimeout(resolve, DELAY_MS.least + random() * (DELAY_MS.most - DELAY_MS.least)));
    return node.add(pod);
  });
  const added = await Promise.all(waits);
  const tookMs = performance.now() - startMs;
  const stats = node.stats;
  console.log(
    [
      `burst of ${BURST}: ${stats.used} of ${stats.adds} ADDs found their address, waited ${stats.waited}, late ${stats.late}, unseen ${stats.unseen}`,
      `  ADD: ${describeTimes(added.map((each) => each.tookMs))}; all of it in ${tookMs.toFixed(0)} ms`,
    ].join("\n"),
  );
  expect(new Set(added.map(({ addresses }) => addresses)).size).toBe(BURST);
  expect(stats.failed + stats.discarded + stats.withdrawn).toBe(0);
  expect(node.api.calls.filter((call) => call === "POST ipallocations")).toHaveLength(BURST);
});
