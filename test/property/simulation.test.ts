/** The simulation (docs/simulation.md) in the gate: the same history from the same seed, permanent seeds and fixed ones; others with BERTH_SEED. */
import { expect, it } from "vitest";
import { PROFILES, type ProfileName } from "../simulation/profiles.ts";
import { DEFAULTS, describeReport, type RunOptions, run, shrink } from "../simulation/run.ts";

/** Runs that once violated an invariant. They stay. */
const FINDINGS: readonly (readonly [what: string, options: Pick<RunOptions, "seed" | "profile" | "steps">])[] = [
  ["an undone claim leaves what was retained before it", { seed: 1, profile: "statefulsets", steps: 10_000 }],
  ["what an undone claim has left is not the member's", { seed: 4, profile: "statefulsets", steps: 5_000 }],
  ["what a killed agent has not answered is not retained", { seed: 1, profile: "partition", steps: 5_000 }],
  ["two claims of a node meet at a retained address", { seed: 1, profile: "partition", steps: 10_000 }],
  ["an earlier pod's address is looked up again", { seed: 102, profile: "statefulsets", steps: 5_000 }],
  ["an address that was never attached delays no pod", { seed: 104, profile: "statefulsets", steps: 5_000 }],
  ["what a lost journal takes in may be unanswered", { seed: 3013, profile: "faults", steps: 5_000 }],
  ["an ADD is answered while its pod is collected", { seed: 17, profile: "conflicts", steps: 5_000 }],
  [
    "of its cooling addresses a pod had one that was never answered",
    { seed: 7009, profile: "partition", steps: 5_000 },
  ],
  ["what is adopted for another NIC is not the member's", { seed: 8018, profile: "faults", steps: 5_000 }],
  ["an adopted address is in doubt until an answer", { seed: 7004, profile: "statefulsets", steps: 5_000 }],
  ["a lost journal's claim is carried out late", { seed: 7013, profile: "faults", steps: 5_000 }],
  ["a NIC has an address that a lost journal took in", { seed: 1, profile: "faults", steps: 18_000 }],
  ["a restarted runtime attaches another sandbox", { seed: 4010, profile: "partition", steps: 5_000 }],
];

const SEED = process.env.BERTH_SEED;
const STEPS = Number(process.env.BERTH_STEPS ?? 5_000);

async function check(options: RunOptions): Promise<void> {
  const report = await run(options);
  if (report.problems.length > 0) expect.fail(describeReport(await shrink(report)));
}

it("the same seed gives the same history, and another seed another one", async () => {
  const options: RunOptions = { ...DEFAULTS, seed: 7, steps: 4_000 };
  const first = await run(options);
  const second = await run(options);
  const other = await run({ ...options, seed: 8 });
  expect([second.digest, second.steps]).toEqual([first.digest, first.steps]);
  expect(other.digest).not.toBe(first.digest);
});

it.for(FINDINGS)("%s", { timeout: 60_000 }, ([, options]) => check({ ...DEFAULTS, ...options }));

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
  check({ ...DEFAULTS, profile, seed, steps: STEPS }),
);
