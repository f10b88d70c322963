import { expect, it } from "vitest";
import { formatNotice, MAX_NOTICE_NAMES, parseNotice } from "../../../host/resources/allocation-notice.ts";

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `10.6.0.${index}`);

it.each([
  ["one", ["10.6.0.7"], ["10.6.0.7"]],
  ["of both families and of a space", ["10.6.0.7.lab", "fd00-0000-0000-0000-0000-0000-0000-0001"], "the same"],
  ["as many as there may be", names(MAX_NOTICE_NAMES), "the same"],
  ["more", names(MAX_NOTICE_NAMES + 1), "all"],
  ["none", [], "all"],
] as const)("recreate: a notice names %s", (_, given, wanted) => {
  const value = formatNotice("2026-11-22T15:00:00.000Z", given);
  expect(parseNotice(value)).toEqual(wanted === "the same" ? given : wanted);
  expect(value.startsWith("2026-11-22T15:00:00.000Z")).toBe(true);
});

it("a notice of more names than it may have is short", () => {
  expect(formatNotice("now", names(MAX_NOTICE_NAMES + 1))).toBe("now *");
  expect(formatNotice("now", names(2))).toBe("now 10.6.0.0 10.6.0.1");
});

it.each(["", "x", "x *", "x 10.6.0.7 ../pods", `x ${names(MAX_NOTICE_NAMES + 1).join(" ")}`])(
  "a notice %j that no controller wrote means all",
  (value) => expect(parseNotice(value)).toBe("all"),
);
