/** Known faults of the product are still there: a row whose fault is gone leaves the list. */
import { expect, it } from "vitest";
import { OPEN_FINDINGS } from "./open-findings.ts";
import { DEFAULTS, run } from "./run.ts";

it("has each fault once", () => {
  const names = OPEN_FINDINGS.map(({ shows }) => shows);
  expect(names).toEqual([...new Set(names)]);
});

it.for(OPEN_FINDINGS)("$shows: $options.profile, seed $options.seed", { timeout: 60_000 }, async (finding) => {
  const { shows, options, violation } = finding;
  const { problems, foundAt } = await run({ ...DEFAULTS, ...options, shows });
  console.log(`${shows}: ${foundAt} steps: ${problems[0] ?? "no violation"}`);
  expect(problems[0] ?? "no violation: take the row out of OPEN_FINDINGS").toContain(violation);
});
