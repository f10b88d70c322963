/**
 * A record that vanished is back (recreate): at once if a controller leads, and within the interval of the agents'
 * own checks if none does. No pod claims an address meanwhile, so a duplicate cannot hide it.
 */
import { expect, it } from "vitest";
import { RECONCILE_INTERVAL_MS, RECONCILE_TICK_MS } from "../../host/agent/reconcile/reconciler.ts";
import { Cluster } from "./cluster.ts";
import { networkDirectory } from "./network-directory.ts";
import { installTime, SimulatedTime } from "./simulated-time.ts";
import { Timeline } from "./timeline.ts";

/** Until pods have their addresses and the controllers lead. */
const START_MS = 60_000;
/** Longest time between two checks of an agent, with its calls. */
const CHECKED_MS = RECONCILE_INTERVAL_MS * 1.25 + 5 * RECONCILE_TICK_MS;
const nics = [["eth0", "lan"]] as const;

/** Returns after how many milliseconds the record of a live pod is back. */
async function vanish(seed: number, withIt: (cluster: Cluster) => void, limitMs: number): Promise<number> {
  const cniConfDirectory = networkDirectory();
  using _ = installTime();
  const time = new SimulatedTime(seed);
  const timeline = new Timeline(() => time.nowMs);
  const shape = {
    ...({ machines: 2, poolSize: 20, selection: "hash", cooldown: "30s" } as const),
    ...{ isDetecting: false, hasStaticPods: false, isStrict: false },
    workloads: [{ name: "web", kind: "plain", replicas: 6, nics, life: 1, isAbsent: false } as const],
  };
  const cluster = new Cluster({ time, timeline, shape, cniConfDirectory });
  const runUntil = async (isOver: () => boolean): Promise<void> => {
    while (!isOver() && (await time.step())) if (time.uncaught.length > 0) throw time.uncaught[0];
  };
  cluster.start();
  await runUntil(() => time.nowMs >= START_MS);
  const [name] = cluster.server.objects.keys();
  if (name === undefined || !cluster.hasLeader) throw new Error("The cluster is not ready");
  const sinceMs = time.nowMs;
  cluster.inside(() => {
    cluster.deleteAllocation(name);
    withIt(cluster);
  });
  await runUntil(() => cluster.server.objects.has(name) || time.nowMs > sinceMs + limitMs);
  const tookMs = time.nowMs - sinceMs;
  for (const { machine } of cluster.nodes) machine.disk.close();
  expect(cluster.ledger.problems).toEqual([]);
  return tookMs;
}

it.each([1, 2, 3])("recreate: at once if a controller leads, seed %i", async (seed) => {
  expect(await vanish(seed, () => {}, 1_000)).toBeLessThan(100);
});

it.each([
  ["its leader is killed with the deletion", (cluster: Cluster) => cluster.killController()],
  ["none runs", (cluster: Cluster) => cluster.endControllers()],
])("recreate: when the agents look for themselves if %s", { timeout: 60_000 }, async (_, withIt) => {
  const tookMs = await vanish(1, withIt, CHECKED_MS);
  console.log(`without a notice a vanished record is back after ${(tookMs / 1000).toFixed(0)} s`);
  expect(tookMs).toBeLessThan(CHECKED_MS);
});
