import { expect, it } from "vitest";
import { renderRecording } from "../../../scripts/demo/recording.ts";

const lines = (...texts: string[]) => texts.map((text, index) => ({ text, atMs: index * 100_000 }));
const delaysOf = (svg: string) => [...svg.matchAll(/animation-delay:(\d+)ms/g)].map(([, ms]) => Number(ms));

it("shows each line once, in order, with its special characters escaped", () => {
  const svg = renderRecording('A "title"', lines("$ berthctl ip <ADDRESS>", "a & b", ""));
  expect([...svg.matchAll(/class="(\w+)" style="[^"]*">(.*?)<\/text>/g)].map(([, kind, text]) => [kind, text])).toEqual(
    [
      ["command", "$ berthctl ip &lt;ADDRESS>"],
      ["output", "a &amp; b"],
      ["output", ""],
    ],
  );
  expect(svg).toContain("<title>A &quot;title&quot;</title>");
});

it("shortens pauses, and never goes back in time", () => {
  const delays = delaysOf(renderRecording("t", lines("a", "b", "$ c", "d")));
  expect(delays).toEqual([0, 1_500, 3_900, 4_800]);
});

it("folds what is wider than the terminal", () => {
  expect(delaysOf(renderRecording("t", [{ text: "x".repeat(241), atMs: 0 }]))).toHaveLength(3);
});

it("scrolls to the last line", () => {
  const svg = renderRecording("t", lines(...Array.from({ length: 40 }, (_, index) => `line ${index}`)));
  expect(svg).toContain("to{transform:translateY(-108px)}");
  expect(svg.match(/%\{transform:translateY/g)).toHaveLength(6);
});
