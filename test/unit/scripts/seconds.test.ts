import { expect, it } from "vitest";
import { compareSeconds } from "../../../scripts/seconds.ts";

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

it("what has no budget is not judged", () =>
  expect(compareSeconds("long tests", 9000, undefined)).toEqual({ note: "" }));
