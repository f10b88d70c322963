/** A child of detect.ts: puts one fault into the product, or none, runs seeds, and prints a line of JSON for each. */

import { putIn } from "./fault.ts";
import { FAULTS } from "./faults.ts";

/** What the child is asked for. */
export interface Question {
  /** Undefined: the product as it is. */
  readonly fault: string | undefined;
  readonly profile: string;
  readonly seed: number;
  readonly steps: number;
  readonly faults: number;
  /** No seed is begun after so many steps. */
  readonly limit: number;
}

/** One seed. */
export interface SeedReport {
  readonly seed: number;
  /** Until the violation; without one those of the whole run. */
  readonly steps: number;
  readonly violation: string | undefined;
}

const question: Question = JSON.parse(process.argv[2] ?? "{}");
if (question.fault !== undefined) {
  const fault = FAULTS.find(({ name }) => name === question.fault);
  if (fault === undefined) throw new Error(`There is no fault "${question.fault}"`);
  putIn(fault);
}
// Loads the product, with the fault.
const { DEFAULTS, run } = await import("../run.ts");
const { PROFILES } = await import("../profiles.ts");
const profile = PROFILES.find((name) => name === question.profile);
if (profile === undefined) throw new Error(`There is no profile "${question.profile}"`);
let left = question.limit;
for (let seed = question.seed; left > 0; seed++) {
  const report = await run({ ...DEFAULTS, profile, seed, steps: question.steps, faults: question.faults });
  const [violation] = report.problems;
  const steps = violation === undefined ? report.steps : report.foundAt;
  console.log(JSON.stringify({ seed, steps, violation } satisfies SeedReport));
  left -= steps;
  if (violation !== undefined) break;
}
