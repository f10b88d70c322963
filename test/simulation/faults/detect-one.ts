/**
 * A child of detect.ts: switches one fault on, or none, runs seeds until a violation or the limit, and prints the
 * finding as JSON.
 */
import { FAULTS } from "./faults.ts";
import { replaceExports } from "./replace-exports.ts";

/** The child's task. */
export interface Question {
  /** Undefined: the product as it is. */
  readonly fault: string | undefined;
  readonly profile: string;
  readonly firstSeed: number;
  /** No seed is begun after so many steps. */
  readonly limit: number;
}

export interface Answer {
  /** The last one. */
  readonly seed: number;
  /** Number of steps of all seeds; of the last one until the violation. */
  readonly steps: number;
  readonly violation: string | undefined;
}

/** Number of steps of each run before all faults of the cluster end. */
const STEPS = 5_000;

const question: Question = JSON.parse(process.argv[2] ?? "{}");
if (question.fault !== undefined) {
  const fault = FAULTS[question.fault];
  if (fault === undefined) throw new Error(`There is no fault "${question.fault}"`);
  replaceExports([fault.replaced]);
}
// Loads the product, with the fault.
const { DEFAULTS, run } = await import("../run.ts");
const { PROFILES } = await import("../profiles.ts");
const profile = PROFILES.find((name) => name === question.profile);
if (profile === undefined) throw new Error(`There is no profile "${question.profile}"`);
let answer: Answer = { seed: question.firstSeed - 1, steps: 0, violation: undefined };
while (answer.violation === undefined && answer.steps < question.limit) {
  const seed = answer.seed + 1;
  const { problems, foundAt } = await run({ ...DEFAULTS, profile, seed, steps: STEPS });
  answer = { seed, steps: answer.steps + foundAt, violation: problems[0] };
}
console.log(JSON.stringify(answer));
