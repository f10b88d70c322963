import { describe, expect, it } from "vitest";
import { countsDueMs, USAGE_UNREAD_ADDRESSES, usageDueMs } from "../../../../host/controller/usage/plan-usage.ts";

const written = { total: 1_000, used: 500 };

describe("exhaustion: a usage object is written", () => {
  it.each([
    ["at once by a process that never wrote it", { total: 1_000, used: 501 }, Number.POSITIVE_INFINITY, 0],
    ["10 s after the last time", { total: 1_000, used: 501 }, 4_000, 6_000],
    ["when 10 s are over", { total: 1_000, used: 501 }, 10_000, 0],
    ["not sooner for a change of a little less than 5 %", { total: 1_000, used: 549 }, 2_000, 8_000],
    ["sooner for a change of 5 %", { total: 1_000, used: 550 }, 2_000, 0],
    ["sooner for as many that became free", { total: 1_000, used: 450 }, 2_000, 0],
    ["never within a second, whatever changes", { total: 1_000, used: 1_000 }, 300, 700],
    ["sooner when the pool is another one", { total: 2_000, used: 500 }, 2_000, 0],
  ])("%s", (_title, now, sinceMs, wanted) => expect(usageDueMs({ now, written, sinceMs, pools: 1 })).toBe(wanted));
  it("sooner for a single address of a small pool", () => {
    const small = { now: { total: 4, used: 1 }, written: { total: 4, used: 0 } };
    expect(usageDueMs({ ...small, sinceMs: 1_000, pools: 1 })).toBe(0);
  });
});

describe("the counts in the pool's own status follow", () => {
  it.each([
    ["not at all when they are right", written, 0, undefined],
    ["within ten seconds when they are off by one", { total: 1_000, used: 501 }, 4_000, 5_000],
    ["at once when the pool has another size", { total: 999, used: 500 }, 1_000, 0],
  ])("%s", (_title, now, sinceMs, wanted) => expect(countsDueMs({ now, written, sinceMs })).toBe(wanted));
});

describe("of ten thousand pools", () => {
  const pools = 10_000;
  const small = { now: { total: 16, used: 9 }, written: { total: 16, used: 8 } };
  it("the usage objects of small ones are written a hundred times a second at most", () =>
    expect(usageDueMs({ ...small, sinceMs: 1_000, pools })).toBe(99_000));
  it.each([
    ["waits for the others up to the size that agents do not read", USAGE_UNREAD_ADDRESSES, 99_000],
    ["is prompt from the size that agents read", USAGE_UNREAD_ADDRESSES + 1, 0],
  ])("a usage object %s", (_title, total, wanted) => {
    const now = { total, used: total };
    expect(usageDueMs({ now, written: { total, used: 0 }, sinceMs: 1_000, pools })).toBe(wanted);
  });
  it("the first counts of a pool, or of another size, do not wait", () => {
    expect(countsDueMs({ now: small.now, written: undefined, sinceMs: Number.POSITIVE_INFINITY })).toBe(0);
    expect(countsDueMs({ now: { total: 32, used: 8 }, written: small.written, sinceMs: 1_000 })).toBe(0);
    expect(usageDueMs({ now: small.now, written: undefined, sinceMs: 1_000, pools })).toBe(0);
    expect(usageDueMs({ now: { total: 32, used: 8 }, written: small.written, sinceMs: 1_000, pools })).toBe(0);
  });
});
