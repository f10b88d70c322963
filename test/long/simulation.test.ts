/** The simulation (docs/develop/simulation.md) with many seeds, more machines and more pods than in the gate. */
import { expect, it } from "vitest";
import { checkRun } from "../simulation/check-run.ts";
import { PROFILES, type ProfileName } from "../simulation/profiles.ts";
import { DEFAULTS, describeReport, type RunOptions, run, shrink } from "../simulation/run.ts";

const FRESH = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);
const STEPS = Number(process.env.BERTH_STEPS ?? 10_000_000);
const STEPS_PER_RUN = 40_000;

/** Seeds that once violated an invariant, three of a profile at most. */
const FOUND: Partial<Record<ProfileName, readonly number[]>> = {
  conflicts: [17, 30_000],
  containers: [3],
  faults: [1, 3013, 50_080],
  hands: [15, 32],
  machines: [81_002, 91_012, 820_000_196],
  partition: [1, 4010, 7009],
  pools: [201, 324],
  registry: [6, 16, 41],
  replacements: [71_014, 820_000_045],
  restores: [3, 311],
  runtimes: [20_025],
  scaled: [76_054],
  silence: [700_000_009],
  statefulsets: [4, 102, 820_000_054],
  subnets: [24, 108, 230],
  tenants: [1, 25],
};
const found = Object.entries(FOUND).flatMap(([profile, seeds]) => seeds.map((seed) => [profile, seed] as const));

it.for(found)("profile %s, seed %i", ([profile, seed]) =>
  checkRun({ ...DEFAULTS, profile: profile as ProfileName, seed }),
);

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
