import { expect, it } from "vitest";
import { CASES, OPERATION_NAMES, type Operation } from "../../../benchmarks/core/cases.ts";
import { CONTESTANTS } from "../../../benchmarks/core/contestants.ts";
import { mergeTurns, type Row } from "../../../benchmarks/core/core.ts";
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
    { work, turns: turns as Row["turns"], repeated: timings(repeated), times: timings(ns / c) },
    "find",
  );
  expect(judged).toEqual({ ns, repeatedNs: repeated, times: ns / c, verdict });
});

it("of the processes that measured a pool the middle figure counts", () => {
  const [work] = CASES;
  if (work === undefined) throw new Error("no case");
  const row = (ns: number): Row => ({
    work,
    turns: Object.fromEntries(CONTESTANTS.map((name, index) => [name, timings(ns + index)])) as Row["turns"],
    repeated: timings(ns + 10),
    times: timings(ns + 20),
    batches: { taken: 7, allocateMany: ns + 30, releaseMany: ns + 40 },
    loads: [{ bytes: 32_768, ns: ns + 50 }],
  });
  expect(mergeTurns([row(9), row(1), row(2)])).toEqual(row(2));
});
