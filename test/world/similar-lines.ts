/** Outcomes of vectors, written as differences from a similar one. */
import { expect } from "vitest";

/** The lines more or less than in a similar case; the planners do common steps in the same order. */
export function differenceFrom(similar: readonly string[], lines: readonly string[]): string[] {
  const isIn = (those: readonly string[]) => (line: string) => those.includes(line);
  expect(lines.filter(isIn(similar)), "in the same order").toEqual(similar.filter(isIn(lines)));
  const less = similar.filter((line) => !lines.includes(line)).map((line) => `- ${line}`);
  const difference = [...less, ...lines.filter((line) => !similar.includes(line)).map((line) => `+ ${line}`)];
  return difference.length === 0 ? ["the same"] : difference;
}
