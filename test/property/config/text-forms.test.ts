import fc from "fast-check";
import { expect, it } from "vitest";
import { duration, formatDuration, MAX_DURATION_MS } from "../../../host/config/fields/duration.ts";
import { compilePattern, isWellFormedPattern } from "../../../host/config/pattern.ts";

it("a duration survives its text", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => {
      expect(duration.parse(formatDuration(ms))).toBe(ms);
    }),
  );
});

/** The slow reference model: a regular expression, safe here because names are short. */
function matchesByModel(pattern: string, name: string): boolean {
  const source = pattern.replace(
    /[*?.]|\[!/g,
    (piece) => ({ "*": ".*", "?": ".", ".": "\\.", "[!": "[^" })[piece] ?? "",
  );
  return new RegExp(`^${source}$`).test(name);
}

it("patterns match as their regular expression does", () => {
  const piece = fc.constantFrom("a", "b", "-", ".", "*", "?", "[ab]", "[!a]", "[a-c]", "[!b-c]");
  const pattern = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
  const name = fc.array(fc.constantFrom("a", "b", "c", "-", "."), { maxLength: 8 }).map((letters) => letters.join(""));
  fc.assert(
    fc.property(pattern, name, (some, text) => {
      expect(isWellFormedPattern(some)).toBe(true);
      expect(compilePattern(some)(text)).toBe(matchesByModel(some, text));
    }),
    { numRuns: 5_000 },
  );
});
