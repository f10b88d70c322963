import { expect, it } from "vitest";
import { compilePattern, isPattern, isWellFormedPattern } from "../../../host/config/pattern.ts";
import { costRatio } from "../../world/cpu-time.ts";

/** Other forms: test/property/config/text-forms.test.ts. */
const rows: [pattern: string, name: string, expected: boolean][] = [
  ["rack[0-9a-c]", "rackb", true],
  ["rack[!0-9]", "rack", false],
  ["[a-]", "-", true],
  ["[-a]", "-", true],
  ["[*?]", "x", false],
  ["[", "[", false],
  ["[9-0]", "5", false],
];

/** The automaton has a bit for each step, 32 in a word. */
for (const length of [31, 32, 33, 63, 64, 65, 252]) {
  rows.push(
    ["a".repeat(length), "a".repeat(length), true],
    [`*${"?".repeat(length)}b`, `${"a".repeat(length + 9)}b`, true],
    [`${"a".repeat(length)}*b`, `${"a".repeat(length)}ccb`, true],
  );
}

it.each(rows)("pattern %s and name %s: %s", (pattern, name, expected) => {
  expect(compilePattern(pattern)(name)).toBe(expected);
});

it.each([
  ["blue", false],
  ["*", true],
  ["a?", true],
  ["a[", true],
])("isPattern of %s is %s", (text, expected) => expect(isPattern(text)).toBe(expected));

it.each([
  ["a[bc]*?", true],
  ["[!x]", true],
  ["[]", false],
  ["[!]", true],
  ["]", false],
  ["[[a]]", false],
  ["[c-a]", false],
])("isWellFormedPattern of %s is %s", (text, expected) => expect(isWellFormedPattern(text)).toBe(expected));

it("many stars cost no more than pattern times name", () => {
  const match = (length: number) => {
    const pattern = `${"*a".repeat(length / 2)}b`;
    return () => {
      for (let i = 0; i < 100; i++) expect(compilePattern(pattern)("a".repeat(length))).toBe(false);
    };
  };
  expect(costRatio(match(60), match(240), 6)).toBeLessThan(4 * 4 * 4);
});
