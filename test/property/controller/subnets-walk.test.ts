/**
 * Whatever runs at once, the addresses of a Subnet are never in two pools: several controllers that all believe that
 * they lead, with old caches, late writes and lost answers, while workloads, Subnets and pools made by hand come,
 * change and go. In the end, all is as it should be.
 */
import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { times } from "../../world/long-cases.ts";
import { STEPS, type Step, walk } from "./subnets-walk.ts";

/**
 * The same walks each time, so that the gate says of a commit what it said before; others with BERTH_SEED, and more
 * with BERTH_RUNS.
 */
const SEED = Number(process.env.BERTH_SEED ?? 20_261_120);
const RUNS = Number(process.env.BERTH_RUNS ?? times(6));
const LENGTH = 250;

/** Weights of the more frequent steps. */
const OFTEN: Partial<Record<Step["kind"], number>> = {
  call: 25,
  rounds: 8,
  hear: 16,
  time: 12,
  "hear of workloads": 6,
  scale: 5,
  come: 4,
  claim: 3,
  start: 3,
};
const kinds = fc.oneof(
  { withCrossShrink: true },
  ...STEPS.map((kind) => ({ weight: OFTEN[kind] ?? 1, arbitrary: fc.constant(kind) })),
);
const steps = fc.array(fc.record({ kind: kinds, dice: fc.noBias(fc.nat()) }), {
  minLength: LENGTH,
  maxLength: LENGTH,
  size: "max",
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

it.each([
  { faultShare: 0, writes: undefined },
  { faultShare: 0.1, writes: undefined },
  { faultShare: 0.4, writes: undefined },
  { faultShare: 0, writes: 4 },
  { faultShare: 0.1, writes: 4 },
])(
  `walks of several controllers give no address to two pools, whatever goes wrong and waits: %o (seed ${SEED})`,
  async ({ faultShare, writes }) => {
    const counts = { gains: 0, losses: 0 };
    const property = fc.asyncProperty(steps, async (all) => {
      const { problems, log, gains, losses } = await walk(all, faultShare, writes);
      counts.gains += gains;
      counts.losses += losses;
      if (problems.length > 0) throw new Error(`${problems.join("\n")}\n${log.join("\n")}`);
    });
    const { failed, numRuns, errorInstance } = await fc.check(property, { seed: SEED, numRuns: RUNS });
    const text = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    expect(failed, `seed ${SEED}, walk ${numRuns}, made simpler:\n${text}`).toBe(false);
    // The walks do something.
    expect(counts.gains).toBeGreaterThan(RUNS);
    expect(counts.losses).toBeGreaterThan(RUNS / 4);
  },
);
