/**
 * The simulation (docs/develop/simulation.md) in the gate: the same history from the same seed, each profile with a
 * fixed seed, and some with a fresh one. With BERTH_SEED that seed takes the place of the fresh one, with all profiles.
 */
import { afterAll, expect, it } from "vitest";
import { checkRun, describeSteps } from "./check-run.ts";
import { PROFILES, type ProfileName } from "./profiles.ts";
import { DEFAULTS, type RunOptions, run } from "./run.ts";

const GIVEN = process.env.BERTH_SEED;
const SEED = Number(GIVEN ?? Date.now() % 2 ** 31);
const STEPS = Number(process.env.BERTH_STEPS ?? 1_000);
/** Profiles that a run of the gate takes, others with each seed. */
const FRESH_PROFILES = 2;

const SAME: readonly ProfileName[] = ["faults", "releases"];

it.for(SAME)("the same seed gives the same history, and another seed another one: %s", async (profile) => {
  const options: RunOptions = { ...DEFAULTS, profile, seed: 7, steps: 500 };
  const first = await run(options);
  const second = await run(options);
  const other = await run({ ...options, seed: 8 });
  expect([second.digest, second.steps]).toEqual([first.digest, first.steps]);
  expect(other.digest).not.toBe(first.digest);
});

it.for(PROFILES)("every invariant holds: profile %s, seed 1", { timeout: 60_000 }, (profile) =>
  checkRun({ ...DEFAULTS, profile, seed: 1, steps: 1_500 }),
);

const first = SEED % PROFILES.length;
const fresh = GIVEN === undefined ? [...PROFILES, ...PROFILES].slice(first, first + FRESH_PROFILES) : PROFILES;

it.for(fresh)(`every invariant holds: profile %s, fresh seed ${SEED}`, { timeout: 60_000 }, (profile) =>
  checkRun({ ...DEFAULTS, profile, seed: SEED, steps: STEPS }, { isFresh: GIVEN === undefined }),
);

afterAll(() => console.log(`${describeSteps()}, fresh seed ${SEED}`));
