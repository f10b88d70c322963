/** The faults of test/cluster that take longer than the gate has time for. BERTH_SEED repeats a chaos. */
import { expect, it, onTestFinished } from "vitest";
import { chaos } from "../cluster/fault-chaos.ts";
import { killAtEffects } from "../cluster/fault-kills.ts";
import { endAll } from "../cluster/fault-questions.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import { startWorld } from "../lab/cluster/world.ts";

it("an agent is killed at every effect of ADD and DEL, by number: nothing is lost, nothing is left", async () => {
  const world = await startWorld({
    ...{ nodes: ["n1"], pools: [{ name: "blue", subnet: "10.6.0.0/23" }], isObserved: true },
  });
  onTestFinished(() => world.stop());
  await followWorld(world);
  expect(await killAtEffects(world, "n1", 1)).toBeGreaterThan(4);
  await endAll(world);
  await world.untilEmpty(DRAIN_MS);
});

const SEED = Number(process.env.BERTH_SEED ?? Math.floor(Math.random() * 1_000_000));
/** So much is left of an agent that had to take a default, and of pools that are known late. */
const DRAIN_MS = 45_000;

it("faults of all kinds follow each other while pods come and go", async () => {
  // Small enough that addresses go round, and that agents meet.
  const pools = [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.60"] }];
  const world = await startWorld({ nodes: ["n1", "n2", "n3"], pools, seed: SEED, isObserved: true });
  onTestFinished(() => world.stop());
  await followWorld(world);
  await chaos(world, { seed: SEED, durationMs: 180_000, podsPerNode: 12 });
  await endAll(world);
  await world.untilEmpty(DRAIN_MS);
});
