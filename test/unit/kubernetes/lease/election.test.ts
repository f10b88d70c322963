import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import type { Candidate, CandidateOptions, Fault } from "../../../world/candidates.ts";
import { Lab, LEASES, NAME, TIMINGS } from "../../../world/candidates.ts";
import type { TestClock } from "../../../world/clock.ts";

let lab: Lab;
let time: TestClock;
/** Of calls by candidates that have {@link FAULTY}. */
let fault: Fault;
const FAULTY: CandidateOptions = { fault: () => fault };

beforeEach(() => {
  lab = new Lab();
  ({ time } = lab);
  fault = "ok";
});
afterEach(() => expect(lab.overlapMs).toBe(0));

/** Candidates that begin one after the other. */
async function candidates(...options: readonly CandidateOptions[]): Promise<Candidate[]> {
  const all: Candidate[] = [];
  for (const [at, each] of options.entries()) {
    all.push(lab.candidate("abc"[at] ?? "", each));
    await time.advance(4_000);
  }
  return all;
}
const one = async (options: CandidateOptions = {}) => (await candidates(options))[0] as Candidate;
const two = async (a: CandidateOptions = {}, b: CandidateOptions = {}) =>
  (await candidates(a, b)) as [Candidate, Candidate];

/** The calls have the fault for so long. */
async function failing(as: Fault, milliseconds: number): Promise<void> {
  fault = as;
  await time.advance(milliseconds);
  fault = "ok";
}

/** A clean stop, on a clock that stands still. */
async function stop(...all: readonly Candidate[]): Promise<void> {
  const closed = Promise.all(all.map(({ election }) => election.close()));
  await time.advance(20_000);
  await closed;
}

const leaders = (...all: readonly Candidate[]) => all.map(({ election }) => election.isLeading);

describe("an election", () => {
  it("is kept while a webhook keeps each write for its default time-out, from the first write on", async () => {
    const timings = { durationMs: 30_000, renewDeadlineMs: 25_000, retryMs: 2_000 };
    // The longest pauses.
    const options = { timings, random: () => 0.99, ...FAULTY };
    const [a, b] = [lab.candidate("a", options), lab.candidate("b", options)];
    await time.advance(31_000);
    await failing("slow", 600_000);
    expect([a.terms, b.terms.length]).toEqual([[{ fromMs: expect.any(Number) }], 0]);
    await stop(a, b);
    const c = lab.candidate("c", options);
    await failing("slow", 30_000);
    expect(c.election.isLeading).toBe(true);
    await stop(c);
  });

  it("hands over at once when the leader stops, and counts it", async () => {
    const [a, b] = await two();
    const beganMs = time.ms;
    const closed = a.election.close();
    await time.advance(2_500);
    await closed;
    expect(b.terms[0]?.fromMs).toBeLessThanOrEqual(beganMs + 2_500);
    expect(lab.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    await stop(b);
    expect(lab.spec.holderIdentity).toBeUndefined();
  });

  it("releases the Lease only when no part acts as the leader any more", async () => {
    const a = await one({ isSlow: true });
    const closed = a.election.close();
    await time.advance(4_000);
    expect([a.leading()?.signal.aborted, lab.spec.holderIdentity]).toEqual([true, "a"]);
    a.finish();
    await time.advance(100);
    await closed;
    expect(lab.spec.holderIdentity).toBeUndefined();
  });

  it.for([-3_600_000, 3_600_000])("does not use other machines' clocks: one is off by %i ms", async (skewMs) => {
    const [a, b] = await two({}, { skewMs });
    await time.advance(60_000);
    expect(b.terms).toEqual([]);
    await stop(a, b);
  });

  it("stops leading before another could, when the API server is gone for the leader alone", async () => {
    const [a, b] = await two(FAULTY);
    await failing("unreachable", 40_000);
    const gapMs = (b.terms[0]?.fromMs ?? 0) - (a.terms[0]?.toMs ?? 0);
    expect(gapMs).toBeGreaterThan(TIMINGS.durationMs - TIMINGS.renewDeadlineMs - 1);
    const reason = { name: "LeadingEnded", message: "The lease could not be renewed in time" };
    expect(a.leading()?.signal.reason).toMatchObject(reason);
    expect(a.election.problem).toBe("Cannot read or write the Lease kube-system/berth-controller: no route");
    await time.advance(10_000);
    expect(a.election).toMatchObject({ isLeading: false, holder: "b", problem: undefined });
  });

  it("does not lead again before the work of its last time has ended", async () => {
    const a = await one({ isSlow: true, ...FAULTY });
    await failing("unreachable", 15_000);
    await time.advance(30_000);
    expect(a.terms).toHaveLength(1);
    a.finish();
    await time.advance(5_000);
    expect(a.terms).toHaveLength(2);
  });

  it("stands aside for another while the work of its last time has not ended", async () => {
    const [a, b] = await two({ isSlow: true, ...FAULTY });
    await failing("unreachable", 12_000);
    await time.advance(20_000);
    a.finish();
    await time.advance(10_000);
    expect(leaders(a, b)).toEqual([false, true]);
  });
});

describe("an election, surprised", () => {
  /** The answers to the next writes of this method are lost. */
  const losing = (wanted: KubeCall["method"]) => {
    const left = { count: 0 };
    return {
      left,
      fault: ({ method }: KubeCall) => (method === wanted && left.count-- > 0 ? "lost answer" : "ok"),
    } as const;
  };

  it("continues to lead when the answer to a renewal was lost", async () => {
    const { left, fault } = losing("PUT");
    const a = await one({ fault });
    left.count = 2;
    await time.advance(30_000);
    expect([a.terms.length, a.election.isLeading]).toEqual([1, true]);
  });

  it("gives up at once when another process holds its Lease", async () => {
    const a = await one();
    lab.edit({ holderIdentity: "x" });
    await time.advance(2_500);
    expect(a.election).toMatchObject({ isLeading: false, holder: "x" });
    expect(a.leading()?.signal.reason).toMatchObject({ name: "LeadingEnded", message: 'The lease is held by "x"' });
    await time.advance(20_000);
    expect(a.terms).toHaveLength(2);
  });

  it("the holder recreates a Lease that was deleted by hand, and the other waits", async () => {
    const [a, b] = await two();
    lab.server.remove(NAME, LEASES);
    await time.advance(60_000);
    expect([a.terms.length, b.terms.length, lab.spec.holderIdentity]).toEqual([1, 0, "a"]);
  });

  it("an older record of its own, out of a backup, does not make it lead beside another", async () => {
    const b = lab.candidate("b", FAULTY);
    await time.advance(5_000);
    const backup = lab.lease ?? {};
    fault = "hang";
    const a = lab.candidate("a");
    await time.advance(30_000);
    fault = "ok";
    await time.advance(10_000);
    expect([a.election.isLeading, b.election.holder]).toEqual([true, "a"]);
    // Until a has just renewed, so that b looks first.
    const before = lab.writes;
    while (lab.writes === before) await time.advance(10);
    lab.server.put(LEASES, NAME, backup);
    await time.advance(60_000);
    expect([...a.terms, ...b.terms].length).toBeGreaterThan(2);
  });

  it("a process that was stopped for a while finds out before it acts", async () => {
    const a = await one();
    time.jump(11_000);
    const leading = a.leading();
    expect(leading?.signal.aborted).toBe(false);
    expect(() => leading?.require()).toThrow("The lease could not be renewed in time");
    expect(leading?.signal.aborted).toBe(true);
  });

  it("does not begin to lead with an answer that took too long", async () => {
    const api = lab.server.client();
    const call: typeof api.call = async (sent) => {
      const answer = await api.call(sent);
      if (sent.method === "POST") time.jump(10_000);
      return answer;
    };
    const a = lab.candidate("a", { api: { ...api, call } });
    await time.advance(100);
    expect(a.terms).toEqual([]);
    await time.advance(3_000);
    expect(a.terms).toHaveLength(1);
  });

  it("leaves keys alone that it does not know", async () => {
    const a = await one();
    lab.edit({ strategy: "OldestEmulationVersion" }, { labels: { team: "net" } });
    await time.advance(10_000);
    expect([a.terms.length, lab.spec.strategy]).toEqual([1, "OldestEmulationVersion"]);
    expect(lab.lease).toMatchObject({ metadata: { labels: { team: "net" } } });
  });

  it("refuses timings with which two could lead", () => {
    const timings = { ...TIMINGS, renewDeadlineMs: 15_000 };
    const fault = "the lease duration is 15000 ms, want more than the renew deadline of 15000 ms";
    expect(() => lab.candidate("a", { timings })).toThrow(`The lease cannot be held: ${fault}`);
  });
});
