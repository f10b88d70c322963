/** The simulation (docs/simulation.md) in the gate: the same history from the same seed, and fixed seeds of each profile; others with BERTH_SEED. */
import { afterAll, expect, it } from "vitest";
import { PROFILES, type ProfileName } from "../simulation/profiles.ts";
import { DEFAULTS, type RunOptions, run } from "../simulation/run.ts";
import { checkRun, describeSteps } from "./simulation-check.ts";

const SEED = process.env.BERTH_SEED;
const STEPS = Number(process.env.BERTH_STEPS ?? 5_000);

it("the same seed gives the same history, and another seed another one", async () => {
  const options: RunOptions = { ...DEFAULTS, seed: 7, steps: 4_000 };
  const first = await run(options);
  const second = await run(options);
  const other = await run({ ...options, seed: 8 });
  expect([second.digest, second.steps]).toEqual([first.digest, first.steps]);
  expect(other.digest).not.toBe(first.digest);
});

const FIXED: Readonly<Record<ProfileName, readonly number[]>> = {
  calm: [1],
  faults: [1, 2],
  statefulsets: [2, 3],
  partition: [2, 3],
  runtimes: [1],
  scarce: [1],
  conflicts: [1],
};

const seeds: readonly (readonly [ProfileName, number])[] = PROFILES.flatMap((profile) =>
  (SEED === undefined ? FIXED[profile] : [Number(SEED)]).map((seed) => [profile, seed] as const),
);

it.for(seeds)("every invariant holds: profile %s, seed %i", { timeout: 60_000 }, ([profile, seed]) =>
  checkRun({ ...DEFAULTS, profile, seed, steps: STEPS }),
);

afterAll(() => console.log(describeSteps()));
