/** When a Lease may be taken: election.test.ts and test/property/kubernetes/election.test.ts. */
import { describe, expect, it } from "vitest";
import {
  findTimingFault,
  observeLease,
  pauseBetween,
  planLease,
} from "../../../../host/kubernetes/lease/plan-lease.ts";

it.each([
  ["the holder's own duration counts", 60_000, 60_005],
  ["the observer's own counts for a record without one", undefined, 7_005],
])("%s", (_, durationMs, untilMs) => {
  const record = { holder: "a", durationMs, mark: "1" };
  const observed = observeLease(undefined, { record, nowMs: 5, durationMs: 7_000 });
  const plan = planLease({ observed, nowMs: untilMs - 1, isOwn: false, isLeading: false });
  expect(plan).toEqual({ kind: "wait", untilMs });
});

describe("timings", () => {
  const timings = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

  it.each([
    [{}, undefined],
    [{ retryMs: 0 }, "the time between two renewals is 0 ms, want more than 0"],
    [{ durationMs: 15_500 }, "the lease duration is 15500 ms, want whole seconds"],
    [{ renewDeadlineMs: 15_000 }, "the lease duration is 15000 ms, want more than the renew deadline of 15000 ms"],
    [{ retryMs: 8_000 }, "the renew deadline is 10000 ms, want more than 1.25 times the 8000 ms between two renewals"],
    [{ durationMs: Number.NaN }, "the lease duration is NaN ms, want whole seconds"],
  ])("%j: %s", (change, fault) => expect(findTimingFault({ ...timings, ...change })).toBe(fault));

  it("pauses are spread by a quarter", () =>
    expect([0, 0.5, 0.999].map((random) => Math.round(pauseBetween(2_000, random)))).toEqual([1_500, 2_000, 2_499]));
});
