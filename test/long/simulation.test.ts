/** The simulation (docs/develop/simulation.md) with many seeds, more machines and more pods than in the gate. */
import { expect, it } from "vitest";
import { PROFILES } from "../simulation/profiles.ts";
import { describeReport, type RunOptions, run, shrink } from "../simulation/run.ts";

const FRESH = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);
const STEPS = Number(process.env.BERTH_STEPS ?? 2_000_000);
const STEPS_PER_RUN = 40_000;

it.for(PROFILES)(`profile %s, seeds from ${FRESH}`, async (profile) => {
  let steps = 0;
  for (let seed = FRESH; steps < STEPS / PROFILES.length; seed++) {
    const [nodes, pods] = seed % 3 === 0 ? [8, 40] : [3, 12];
    const options: RunOptions = { profile, seed, nodes, pods, steps: STEPS_PER_RUN, faults: 1 + (seed % 3) };
    const report = await run(options);
    if (report.problems.length > 0) expect.fail(describeReport(await shrink(report)));
    steps += report.steps;
  }
  console.log(`simulation: ${steps} steps with profile ${profile}`);
});
