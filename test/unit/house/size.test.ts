import { describe, expect, it } from "vitest";
import { readSources, type Source } from "./sources.ts";

const MAX_FILE_LINES = 300;
const MAX_FILES_IN_FOLDER = 15;
const HEADER = /^(?:#![^\n]*\n)?\/\*\*[\s\S]*?Effects: [\s\S]*?\*\//;

const sources = [
  ...readSources("host", ".ts"),
  ...readSources("assembly", ".ts"),
  ...readSources("native", ".c"),
  ...readSources("scripts", ".ts"),
  ...readSources("scripts", ".mjs"),
  ...readSources("test", ".ts"),
];

function tooLong({ path, lines }: Source): string[] {
  return lines > MAX_FILE_LINES ? [`${path} has ${lines} lines: two ideas in one file; part them`] : [];
}

describe("the house", () => {
  it(`no file has more than ${MAX_FILE_LINES} lines`, () => expect(sources.flatMap(tooLong)).toEqual([]));

  it("finds a file that is too long", () => {
    expect(tooLong({ path: "x.ts", text: "", lines: MAX_FILE_LINES + 1, imports: [] })).toHaveLength(1);
  });

  it("every file of host says what it is for and what its effects are", () => {
    const silent = readSources("host", ".ts").filter(({ text }) => !HEADER.test(text));
    expect(silent.map(({ path }) => `${path}: begin with a comment that ends "Effects: none." or says them`)).toEqual(
      [],
    );
  });

  it(`no folder of host has more than ${MAX_FILES_IN_FOLDER} files`, () => {
    const counts = new Map<string, number>();
    for (const { path } of readSources("host", ".ts")) {
      const folder = path.slice(0, path.lastIndexOf("/"));
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
    const full = [...counts].filter(([, count]) => count > MAX_FILES_IN_FOLDER);
    expect(full.map(([folder, count]) => `${folder} has ${count} files: two ideas in one folder; part them`)).toEqual(
      [],
    );
  });

  it("no loose ends are left in the sources", () => {
    const marks = new RegExp(["TO", "DO|FIX", "ME|XX", "X"].join(""));
    const loose = sources.filter(({ text }) => marks.test(text)).map(({ path }) => path);
    expect(loose).toEqual([]);
  });
});
