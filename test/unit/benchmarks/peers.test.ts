import { describe, expect, test } from "vitest";
import { renderPlot } from "../../../benchmarks/harness/plot.ts";
import { describeFailures, reasonOf } from "../../../benchmarks/peers/failures.ts";
import { root } from "../../../scripts/setup/paths.mjs";

describe("reason of a failure", () => {
  test.each([
    ['{"code": 999, "msg": "no address", "details": "pool \\"a\\""}', 'no address: pool "a"'],
    ['{ "msg": "no address" }Run 7', "no address"],
    [`cannot   open ${root}/a.json`, "cannot open …/a.json"],
    ["x".repeat(300), `${"x".repeat(260)}…`],
  ])("%s", (text, expected) => expect(reasonOf(text)).toBe(expected));

  test("equal but for numbers counts as one, the most frequent first", () => {
    const texts = ["pod-1 is gone", "no address", "pod-22 is gone"];
    expect(describeFailures("here", texts)).toEqual(['here: 2 × "pod-1 is gone"', 'here: 1 × "no address"']);
  });
});

test("a plot leaves out a place that a series has no value for", () => {
  const series = [{ name: "a", values: [1, Number.NaN, 100] }];
  const svg = renderPlot({ title: "t", unit: "milliseconds", places: ["x", "y", "z"], series });
  expect(svg.match(/<circle/g)).toHaveLength(2);
  expect(svg).not.toContain("NaN");
});
