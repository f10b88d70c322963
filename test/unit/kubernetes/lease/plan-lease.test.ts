import { describe, expect, it } from "vitest";
import {
  findTimingFault,
  type LeaseRecord,
  type ObservedLease,
  observeLease,
  pauseBetween,
  planLease,
} from "../../../../host/kubernetes/lease/plan-lease.ts";

const record = (fields: Partial<LeaseRecord> = {}): LeaseRecord => ({
  ...{ holder: "a", durationMs: 15_000, mark: "1" },
  ...fields,
});
const seen = (fields: Partial<ObservedLease> = {}): ObservedLease => ({
  ...{ record: record(), sinceMs: 100_000, lastDurationMs: 15_000 },
  ...fields,
});
const GONE = seen({ record: undefined });
const OWN = { isOwn: true, isLeading: true };

it.each<[string, ObservedLease, nowMs: number, string, { isOwn?: boolean; isLeading?: boolean }?]>([
  ["another's is left to it until it was silent for its duration", seen(), 114_999, "wait 115000"],
  ["another's is taken when it was silent for its duration", seen(), 115_000, "hold"],
  ["the holder's own duration counts", seen({ lastDurationMs: 60_000 }), 115_000, "wait 160000"],
  ["one without a holder is taken at once", seen({ record: record({ holder: "" }) }), 100_000, "hold"],
  ["one's own is renewed", seen(), 100_000, "hold", OWN],
  ["none that ever was is made at once", { ...GONE, lastDurationMs: undefined }, 100_000, "create"],
  ["one that vanished counts as held", GONE, 114_999, "wait 115000"],
  ["one that vanished is made anew after its duration", GONE, 115_000, "create"],
  ["the holder of one that vanished makes it anew at once", GONE, 100_000, "create", { isLeading: true }],
])("who may take a Lease: %s", (_, observed, nowMs, wanted, rest = {}) => {
  const plan = planLease({ observed, nowMs, isOwn: false, isLeading: false, ...rest });
  expect(Object.values(plan).join(" ")).toBe(wanted);
});

describe("what an observer has seen", () => {
  const look = (now: LeaseRecord | undefined, nowMs: number) => ({ record: now, nowMs, durationMs: 7_000 });

  it("keeps its time while the record is the same, whatever its times of day say", () => {
    const first = observeLease(undefined, look(record(), 5));
    expect(observeLease(first, look(record(), 900))).toEqual({ record: record(), sinceMs: 5, lastDurationMs: 15_000 });
  });

  it("starts over with each renewal", () =>
    expect(observeLease(seen(), look(record({ mark: "2" }), 200_000)).sinceMs).toBe(200_000));

  it("starts over when the Lease vanishes, and knows for how long it was held", () =>
    expect(observeLease(seen(), look(undefined, 200_000))).toEqual({ ...GONE, sinceMs: 200_000 }));

  it("keeps its time while there is no Lease, and takes none that never was for held", () => {
    const first = observeLease(undefined, look(undefined, 5));
    expect(observeLease(first, look(undefined, 900))).toEqual({ ...GONE, sinceMs: 5, lastDurationMs: undefined });
  });

  it("takes the observer's own duration for a record without one", () =>
    expect(observeLease(undefined, look(record({ durationMs: undefined }), 5)).lastDurationMs).toBe(7_000));
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

  it("pauses are spread by a quarter", () => {
    expect([0, 0.5, 0.999].map((random) => Math.round(pauseBetween(2_000, random)))).toEqual([1_500, 2_000, 2_499]);
  });
});
