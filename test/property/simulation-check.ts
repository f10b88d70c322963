/** Runs of the simulation in a test, and how many steps they took together. */
import { expect } from "vitest";
import { describeReport, type RunOptions, run, shrink } from "../simulation/run.ts";

let steps = 0;

/** Fails with the shrunk history if an invariant is violated. */
export async function checkRun(options: RunOptions): Promise<void> {
  const report = await run(options);
  steps += report.steps;
  if (report.problems.length > 0) expect.fail(describeReport(await shrink(report)));
}

export function describeSteps(): string {
  return `simulation: ${steps} steps`;
}
