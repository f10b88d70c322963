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

/** The slow reference model: all ways to divide the name between the pieces. */
function matchesByModel(pieces: readonly string[], name: string): boolean {
  let reached = new Set([0]);
  for (const piece of pieces) {
    const next = new Set<number>();
    for (const at of reached) {
      if (piece === "*") for (let end = at; end <= name.length; end++) next.add(end);
      else if (at < name.length && takes(piece, name.charAt(at))) next.add(at + 1);
    }
    reached = next;
  }
  return reached.has(name.length);
}

function takes(piece: string, character: string): boolean {
  if (piece === "?") return true;
  return piece.startsWith("[") ? new RegExp(piece.replace("[!", "[^")).test(character) : piece === character;
}

it.each([
  ["short", 8],
  ["as long as names may be", 253],
])("patterns match as the model does: %s", (_, maxLength) => {
  const piece = fc.constantFrom("a", "b", "-", ".", "*", "?", "[ab]", "[!a]", "[a-c]", "[!b-c]");
  const letter = fc.constantFrom("a", "b", "c", "-", ".");
  const size = "max";
  const fill = (taken: string): string => (taken === "*" ? "" : taken.length > 1 ? "b" : taken === "?" ? "c" : taken);
  /** A name that many of the pieces take, but for one letter. */
  const cases = fc.record({ pieces: fc.array(piece, { maxLength, size }), at: fc.nat(maxLength), letter });
  const check = (pieces: readonly string[], text: string): void => {
    const pattern = pieces.join("");
    expect(isWellFormedPattern(pattern)).toBe(true);
    expect(compilePattern(pattern)(text)).toBe(matchesByModel(pieces, text));
  };
  fc.assert(
    fc.property(cases, fc.array(letter, { maxLength, size }), ({ pieces, at, letter: other }, letters) => {
      const near = pieces.map(fill).join("");
      check(pieces, near);
      check(pieces, near.slice(0, at) + other + near.slice(at + 1));
      check(pieces, letters.join(""));
    }),
    { numRuns: maxLength > 8 ? 300 : 3_000 },
  );
});
