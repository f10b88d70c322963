import { afterEach, describe, expect, it } from "vitest";
import { UsageError } from "../../../host/cli/exit-code.ts";
import { describeZone, parseDeadline, parseSpan, parseTime } from "../../../host/cli/times.ts";

const zone = process.env.TZ;
afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

function check(zone: string, text: string, wanted: string, isLocal: boolean): void {
  process.env.TZ = zone;
  const { time, isLocal: found } = parseTime(text, new Date("2026-11-26T20:30:15.250Z"));
  expect([time.toISOString(), found]).toEqual([wanted, isLocal]);
}

describe("a time", () => {
  it.each([
    ["UTC", "14:02", "2026-11-26T14:02:00.000Z", true],
    ["Europe/Berlin", "14:02", "2026-11-26T13:02:00.000Z", true],
    ["Europe/Berlin", "9:02:30", "2026-11-26T08:02:30.000Z", true],
    ["Europe/Berlin", "2026-07-01", "2026-06-30T22:00:00.000Z", true],
    ["Europe/Berlin", "2026-07-01T10:00:30.5", "2026-07-01T08:00:30.500Z", true],
    ["Europe/Berlin", "2026-07-01T10:00:00Z", "2026-07-01T10:00:00.000Z", false],
    ["Europe/Berlin", "2026-07-01T10:00:00.123456789z", "2026-07-01T10:00:00.123Z", false],
    ["Europe/Berlin", "2026-07-01T10:00:00-05:30", "2026-07-01T15:30:00.000Z", false],
    ["Europe/Berlin", "1h", "2026-11-26T19:30:15.250Z", false],
    ["UTC", "1d2h3m4s", "2026-11-25T18:27:11.250Z", false],
  ])("in %s %s is %s", check);

  it.each([
    ...["25:00", "24:00", "14:75", "14:02:60", "1402", "14", "now", "", "h", "1h1d", "1.5h", "-1h", "9999999999d"],
    ...["2026-02-30", "2026-13-01", "2026-00-10", "2026-07-01T24:00:00Z", "2026-07-01T10:60Z", "2026-7-1"],
    ...["2026-07-01T10:00:00+25:00", "Jul 1 2026", "+002026-01-01T00:00:00Z"],
  ])("%j is refused", (text) => expect(() => parseTime(text)).toThrow(UsageError));

  it("that the clock skips is refused", () => {
    process.env.TZ = "Europe/Berlin";
    expect(() => parseTime("2026-03-29T02:30")).toThrow(/found "2026-03-29T02:30"/);
  });
});

it("a zone has its name and its distance then", () => {
  process.env.TZ = "Europe/Berlin";
  expect(describeZone(new Date("2026-11-26T12:00:00Z"))).toBe("Europe/Berlin, UTC+01:00");
  process.env.TZ = "America/St_Johns";
  expect(describeZone(new Date("2026-07-26T12:00:00Z"))).toBe("America/St_Johns, UTC-02:30");
});

it.each([
  ["30d", "2026-12-26T20:30:15.250Z"],
  ["1h30m", "2026-11-26T22:00:15.250Z"],
  ["2026-12-31", "2026-12-31T00:00:00.000Z"],
  ["23:00", "2026-11-26T23:00:00.000Z"],
  ["20:30:15", "refused"],
  ["0s", "refused"],
])("the deadline %s is %s", (text, wanted) => {
  process.env.TZ = "UTC";
  const parse = () => parseDeadline("--until", text, new Date("2026-11-26T20:30:15.250Z")).toISOString();
  if (wanted === "refused") expect(parse).toThrow(UsageError);
  else expect(parse()).toBe(wanted);
});

it.each([
  ["10s", 10_000],
  ["1h30m", 5_400_000],
  ["200ms", 200],
  ["0.5", 500],
  ["60", 60_000],
])("the duration %s is %d ms", (text, wanted) => expect(parseSpan("--for", text)).toBe(wanted));

it.each(["", "0", "-1", "0s", "10 s", "1d", "1.5s", "600h"])("%j is no duration", (text) =>
  expect(() => parseSpan("--for", text)).toThrow(UsageError),
);
