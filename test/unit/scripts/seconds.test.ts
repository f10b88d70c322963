import { expect, it } from "vitest";
import { compareSeconds, slownessOf } from "../../../scripts/seconds.ts";

it.each([
  { seconds: 100, processors: 2, note: "" },
  { seconds: 88, processors: 2, note: ": npm run size -- --seconds lowers it" },
  { seconds: 110, processors: 2, note: "" },
  { seconds: 111, processors: 2, note: ": 11 % MORE" },
  { seconds: 125, processors: 2, note: ": 25 % MORE" },
  { seconds: 126, processors: 2, note: ": 26 % MORE", complaint: "fuzz tests: 26 % above its budget" },
  { seconds: 126, processors: 4, note: ": 26 % MORE" },
])("$seconds s of 100 s on $processors processors", ({ seconds, processors, note, complaint }) => {
  const compared = compareSeconds("fuzz tests", seconds, 100, processors);
  expect(compared.note).toBe(`, budget  100${note}`);
  expect(compared.complaint).toEqual(complaint === undefined ? undefined : expect.stringContaining(complaint));
});

it.each([
  { seconds: { a: 20, b: 40, c: 80 }, slowness: 2 },
  { seconds: { a: 200, b: 20, c: 40 }, slowness: 1 },
  { seconds: { a: 5, b: 10, c: 20 }, slowness: 1 },
  { seconds: { a: 30, other: 1 }, slowness: 3 },
  { seconds: {}, slowness: 1 },
])("a machine with $seconds takes $slowness times as long", ({ seconds, slowness }) =>
  expect(slownessOf(seconds, { a: 10, b: 20, c: 40 })).toBe(slowness),
);

it("what a first run reads from a disk is no failure", () =>
  expect(compareSeconds("linter", 30, 13, 2)).toEqual({ note: ", budget   13: 131 % MORE" }));

it("what has no budget is not judged", () =>
  expect(compareSeconds("long tests", 9000, undefined)).toEqual({ note: "" }));
