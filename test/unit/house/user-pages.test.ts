/** The pages for users: docs/README.md lists them in groups, and together they stay short enough to be read. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./sources.ts";

const GROUPS = ["Start", "Recipes", "Do", "Look up", "Understand"] as const;
const MAX_LINES = 12;
/** Words of all pages of these groups together, those to be copied included. */
const MAX_WORDS = 45_000;

function read(name: string): string {
  return readFileSync(join(root, "docs", name), "utf8");
}

/** The rows of the table below a heading of docs/README.md. */
function rowsOf(group: string): string[] {
  const [, section = ""] = read("README.md").split(`\n## ${group}\n`);
  const [text = ""] = section.split("\n## ");
  return text
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(1);
}

function pagesOf(group: string): string[] {
  return [
    ...rowsOf(group)
      .join("\n")
      .matchAll(/\]\(((?:recipes\/)?[a-z0-9-]+\.md)(?:#[^)]*)?\)/g),
  ].map(([, name = ""]) => name);
}

function countWords(text: string): number {
  return text.split(/\s+/).length;
}

describe("docs/README.md", () => {
  it.each([...GROUPS, "For developers"])("has a group %s of few lines", (group) => {
    expect(rowsOf(group).length).toBeGreaterThan(0);
    expect(rowsOf(group).length).toBeLessThanOrEqual(MAX_LINES);
  });

  it("has every page of docs in one group", () => {
    const all = ["", "recipes/"].flatMap((folder) =>
      readdirSync(join(root, "docs", folder)).map((name) => folder + name),
    );
    const names = all.filter((name) => name.endsWith(".md") && name !== "README.md");
    expect([...GROUPS, "For developers"].flatMap(pagesOf).toSorted()).toEqual(names.toSorted());
  });
});

it.each([...pagesOf("Recipes"), ...pagesOf("Do")])("%s begins with what the reader has and gets", (name) => {
  expect(read(name)).toMatch(/^(?:<!--.*-->\n\n)?# .+\n\nYou have: (?:.+\n)+\nYou get: /);
});

it(`pages for users have at most ${MAX_WORDS} words together`, () => {
  const words = GROUPS.flatMap(pagesOf).map((name) => [countWords(read(name)), name] as const);
  const total = words.reduce((sum, [count]) => sum + count, 0);
  const longest = words.toSorted(([a], [b]) => b - a).slice(0, 5);
  expect(total, `the longest: ${longest.map(([count, name]) => `${name} ${count}`).join(", ")}`).toBeLessThanOrEqual(
    MAX_WORDS,
  );
});
