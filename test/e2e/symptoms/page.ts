/**
 * docs/troubleshooting.md as its tests read it. A symptom is a heading of level 3; the first block ```text below it is
 * the user's view, and a test of the same title produces it. `…` in the block stands for any text; the lines are found
 * in this order.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";

export function readSymptoms(): Map<string, string[]> {
  const symptoms = new Map<string, string[]>();
  for (const section of readFileSync(join(root, "docs", "troubleshooting.md"), "utf8")
    .split(/^### /m)
    .slice(1)) {
    const title = section.slice(0, section.indexOf("\n"));
    const [, text = ""] = /^```text\n(.*?)^```$/ms.exec(section) ?? [];
    symptoms.set(title, text.split("\n").filter(Boolean));
  }
  return symptoms;
}

/** A test that produces the symptom of that heading; `produce` resolves with the text that a user sees. */
export function symptom(title: string, produce: () => Promise<string>): void {
  it(title, async () => {
    const lines = readSymptoms().get(title) ?? [];
    expect(lines, `docs/troubleshooting.md has no block below "### ${title}"`).not.toEqual([]);
    const output = await produce();
    const pattern = lines.map((line) => line.split("…").map(RegExp.escape).join(".*?"));
    expect(output).toMatch(new RegExp(pattern.join("(?:.|\\n)*?")));
  });
}
