import { describe, expect, it } from "vitest";
import { formatCount, formatPercent } from "../../../host/cli/text.ts";
import { escapeUnprintable, printable, printableLines } from "../../../host/lib/printable.ts";

it.each<[count: bigint, wanted: string]>([
  [0n, "0"],
  [2n ** 32n, "4294967296"],
  [2n ** 32n + 1n, "2^32+1"],
  [2n ** 33n, "2^33"],
  [2n ** 64n - 3n, "2^64-3"],
  [2n ** 64n - 1n, "2^64-1"],
  [2n ** 64n + 2n ** 63n, "~2.7e19"],
  [10n ** 12n, "~1.0e12"],
])("counts %d is %s", (count, wanted) => expect(formatCount(count)).toBe(wanted));

it.each<[part: bigint, whole: bigint, wanted: string]>([
  [0n, 0n, "-"],
  [0n, 10n, "0%"],
  [1n, 1_000n, "<1%"],
  [999n, 1_000n, "99%"],
  [1_000n, 1_000n, "100%"],
])("percents %d of %d are %s", (part, whole, wanted) => expect(formatPercent(part, whole)).toBe(wanted));

describe("unprintable characters", () => {
  it.each<[text: string, wanted: string]>([
    ["é中", "é中"],
    ["\u001b[31mred\u001b[0m", "\\u{1b}[31mred\\u{1b}[0m"],
    ["a\nb\r\tc", "a\\u{a}b\\u{d}\\u{9}c"],
    ["\u009b2J \u202e \u200b \u2028 \ud800", "\\u{9b}2J \\u{202e} \\u{200b} \\u{2028} \\u{d800}"],
  ])("%j is shown as %s", (text, wanted) => expect(printable(text)).toBe(wanted));

  it("lines of a text stay lines", () => expect(printableLines("a\n\u0007b")).toBe("a\n\\u{7}b"));

  it("JSON stays the same value", () => {
    const value = { a: "\u009b\u202e\u{e0001}\u0000 \n" };
    const text = escapeUnprintable(JSON.stringify(value, undefined, 1));
    expect(text).not.toMatch(/[[\p{Cc}\p{Cf}]--\n]/v);
    expect(JSON.parse(text)).toEqual(value);
  });
});
