import { expect, it } from "vitest";
import { CASES, OPERATION_NAMES, type Operation } from "../../../benchmarks/core/cases.ts";
import { CONTESTANTS } from "../../../benchmarks/core/contestants.ts";
import { judge } from "../../../benchmarks/core/page.ts";

/** Every operation with that figure. */
const timings = (ns: number) =>
  Object.fromEntries(OPERATION_NAMES.map((name) => [name, ns])) as Record<Operation, number>;

it.each([
  ["within the limit", 20, 1, 20, "met"],
  ["above it, twenty without misses, and C waits as well", 30, 20, 20, "bound"],
  ["above it, and C does not wait as long", 30.1, 20, 20, "missed"],
  ["above it, without misses too", 30, 20, 20.1, "missed"],
] as const)("an operation is judged %s", (_, ns, c, repeated, verdict) => {
  const [work] = CASES;
  if (work === undefined) throw new Error("no case");
  const turns = Object.fromEntries(CONTESTANTS.map((name) => [name, timings(name === "C twin" ? c : ns)]));
  const judged = judge(
    { work, turns: turns as Parameters<typeof judge>[0]["turns"], repeated: timings(repeated) },
    "find",
  );
  expect(judged).toEqual({ ns, repeatedNs: repeated, times: ns / c, verdict });
});
