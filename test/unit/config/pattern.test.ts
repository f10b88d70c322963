import { expect, it } from "vitest";
import { compilePattern, isPattern, isWellFormedPattern } from "../../../host/config/pattern.ts";
import { costRatio } from "../../world/cpu-time.ts";

/** Other forms: test/property/config/text-forms.test.ts. */
const rows: [pattern: string, name: string, expected: boolean][] = [
  ["[a-]", "-", true],
  ["[-a]", "-", true],
  ["[*?]", "x", false],
  ["[", "[", false],
  ["[9-0]", "5", false],
];

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
