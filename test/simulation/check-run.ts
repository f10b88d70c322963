/** Runs of the simulation in a test, and how many steps they took together. */
import { expect } from "vitest";
import { describeReport, type RunOptions, run, shrink } from "./run.ts";

let steps = 0;

/** Fails with the shrunk history if an invariant is violated. `isFresh`: the seed is another one each time. */
export async function checkRun(options: RunOptions, { isFresh = false } = {}): Promise<void> {
  const report = await run(options);
  steps += report.steps;
  if (report.problems.length === 0) return;
  const text = describeReport(await shrink(report));
  expect.fail(isFresh ? `${describeFresh(options)}\n${text}` : text);
}

/** Describes the meaning of a violation of a fresh seed. */
function describeFresh({ seed, profile, steps }: RunOptions): string {
  return `The gate takes another seed each time, so this violation may be older than your change; BERTH_SEED=${seed} repeats it, also without the change.
If it is older, file an issue with this command, and run the gate again:
  npm run simulate -- --seed ${seed} --profile ${profile} --steps ${steps}`;
}

export function describeSteps(): string {
  return `simulation: ${steps} steps`;
}
