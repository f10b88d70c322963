import { describe, expect, it } from "vitest";
import { readSources, type Source } from "./sources.ts";

/** From here on a file is worth a question, but not a failure: code is divided by idea, not by count. */
const LONG_FILE_LINES = 400;

const sources = [
  ...readSources("host", ".ts"),
  ...readSources("assembly", ".ts"),
  ...readSources("native", ".c"),
  ...readSources("scripts", ".ts"),
  ...readSources("scripts", ".mjs"),
  ...readSources("test", ".ts"),
];

function longFiles({ path, lines }: Source): string[] {
  return lines > LONG_FILE_LINES ? [`${path} has ${lines} lines: does it hold one idea?`] : [];
}

for (const warning of sources.flatMap(longFiles)) console.warn(warning);

describe("the house", () => {
  it("has sources to look at", () => expect(sources.length).toBeGreaterThan(200));

  it("no loose ends are left in the sources", () => {
    const marks = new RegExp(["TO", "DO|FIX", "ME|XX", "X"].join(""));
    const loose = sources.filter(({ text }) => marks.test(text)).map(({ path }) => path);
    expect(loose).toEqual([]);
  });
});
