/** Outcomes of vectors, written as what differs from a similar one. */
import { expect } from "vitest";

/** What is more or less than in a similar case; the planners do in the same order what both do. */
export function differenceFrom(similar: readonly string[], lines: readonly string[]): string[] {
  const isIn = (those: readonly string[]) => (line: string) => those.includes(line);
  expect(lines.filter(isIn(similar)), "in the same order").toEqual(similar.filter(isIn(lines)));
  const less = similar.filter((line) => !lines.includes(line)).map((line) => `- ${line}`);
  const difference = [...less, ...lines.filter((line) => !similar.includes(line)).map((line) => `+ ${line}`)];
  return difference.length === 0 ? ["the same"] : difference;
}
