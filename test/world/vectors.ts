/** The planners' cases of one folder: test/vectors/coordinator/README.md has their form. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectRecorded } from "../fakes/recorded.ts";

/** Text before an expected line. */
export const MARGIN = "    ";

export const linesOf = (path: string): string[] => readFileSync(path, "utf8").trimEnd().split("\n");

/** `replay` returns the case with its lines replaced by the actual ones. `least`: number of cases. */
export function describeVectors(
  folder: string,
  least: number,
  replay: (file: string) => { readonly text: readonly string[] },
): void {
  const files = readdirSync(folder).filter((name) => name.endsWith(".txt"));
  const cases = files.map((file) => ({ file, lines: linesOf(join(folder, file)) }));

  describe("the planners", () => {
    it.each(cases.map(({ file, lines }) => [lines[0]?.replace(/^# /, ""), file]))("%s (%s)", async (_, file = "") => {
      await expectRecorded(join(folder, file), `${replay(file).text.join("\n")}\n`);
    });

    it("there are many cases, each says what it shows, and none is without a request", () => {
      expect(files.length).toBeGreaterThanOrEqual(least);
      expect(cases.filter(({ lines }) => !/^# .*\.$/.test(lines[0] ?? ""))).toEqual([]);
      expect(cases.filter(({ lines }) => !lines.some((line) => line.startsWith(MARGIN)))).toEqual([]);
    });
  });
}
