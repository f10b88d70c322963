import { expect, it } from "vitest";
import { formatRange } from "../../../../../host/net/range.ts";
import { range } from "../../../../../test/world/values.ts";
import { cutRanges } from "../../../blocks/cut-ranges.ts";

it.each<[what: string, list: string, wanted: string]>([
  ["nothing", "", ""],
  ["ranges that fit", "10.0.0.1-10.0.0.3 10.0.0.9", "10.0.0.1-10.0.0.3 10.0.0.9"],
  ["a range across three parts", "10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.4 | 10.0.0.5-10.0.0.8 | 10.0.0.9"],
  ["the rest of a part", "10.0.0.1 10.0.1.1-10.0.1.6", "10.0.0.1 10.0.1.1-10.0.1.3 | 10.0.1.4-10.0.1.6"],
  ["too many ranges", "10.0.0.1 10.0.0.3 10.0.0.5", "10.0.0.1 10.0.0.3 | 10.0.0.5"],
  ["IPv6", "fd00::1-fd00::5", "fd00::1-fd00::4 | fd00::5"],
])("%s", (_, list, wanted) => {
  const ranges = list.split(" ").filter(Boolean).map(range);
  const parts = cutRanges(ranges, { addresses: 4, ranges: 2 });
  expect(parts.map((part) => part.map(formatRange).join(" ")).join(" | ")).toBe(wanted);
});
