import { describe, expect, test } from "vitest";
import type { KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import { type Candidate, Lab, LEASES, NAME, TIMINGS } from "../../../world/candidates.ts";

const it = test.extend("lab", () => new Lab()).extend("time", ({ lab }) => lab.time);

/** A clean stop, on a clock that stands still. */
async function stop({ time }: Lab, ...candidates: Candidate[]): Promise<void> {
  const closed = Promise.all(candidates.map(({ election }) => election.close()));
  await time.advance(20_000);
  await closed;
}

describe("an election", () => {
  it("has one leader of two, who renews", async ({ lab, time }) => {
    const [a, b] = [lab.candidate("a"), lab.candidate("b")];
    await time.advance(120_000);
    expect([a.terms.length, b.terms.length].sort()).toEqual([0, 1]);
    expect(lab.overlapMs).toBe(0);
    expect(lab.writes).toBeGreaterThan(50);
    expect(lab.spec).toMatchObject({ holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0 });
    expect([a.election.isLeading, b.election.isLeading, b.election.holder]).toEqual([true, false, "a"]);
    await stop(lab, a, b);
  });

  it("is kept while a webhook keeps each write for its default time-out, from the first write on", async ({
    lab,
    time,
  }) => {
    const timings = { durationMs: 30_000, renewDeadlineMs: 25_000, retryMs: 2_000 };
    let isSlow = false;
    // The longest pauses.
    const options = { timings, random: () => 0.99, fault: () => (isSlow ? "slow" : "ok") } as const;
    const [a, b] = [lab.candidate("a", options), lab.candidate("b", options)];
    await time.advance(31_000);
    isSlow = true;
    await time.advance(600_000);
    expect([a.terms, b.terms.length]).toEqual([[{ fromMs: expect.any(Number) }], 0]);
    isSlow = false;
    await stop(lab, a, b);
    const c = lab.candidate("c", options);
    isSlow = true;
    await time.advance(30_000);
    expect(c.election.isLeading).toBe(true);
    isSlow = false;
    await stop(lab, c);
  });

  it("hands over at once when the leader stops, and counts it", async ({ lab, time }) => {
    const a = lab.candidate("a");
    await time.advance(5_000);
    const b = lab.candidate("b");
    await time.advance(5_000);
    const beganMs = time.ms;
    const closed = a.election.close();
    await time.advance(2_500);
    await closed;
    expect(b.terms[0]?.fromMs).toBeLessThanOrEqual(beganMs + 2_500);
    expect(lab.overlapMs).toBe(0);
    expect(lab.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    await stop(lab, b);
    expect(lab.spec.holderIdentity).toBeUndefined();
  });

  it("releases the Lease only when no part acts as the leader any more", async ({ lab, time }) => {
    const a = lab.candidate("a", { isSlow: true });
    await time.advance(3_000);
    const closed = a.election.close();
    await time.advance(4_000);
    expect(a.leading()?.signal.aborted).toBe(true);
    expect(lab.spec.holderIdentity).toBe("a");
    a.finish();
    await time.advance(100);
    await closed;
    expect(lab.spec.holderIdentity).toBeUndefined();
  });

  it("waits for a leader that died, by its own clock", async ({ lab, time }) => {
    let isDead = false;
    lab.candidate("a", { fault: () => (isDead ? "hang" : "ok") });
    await time.advance(3_000);
    const b = lab.candidate("b");
    await time.advance(4_000);
    isDead = true;
    const diedMs = time.ms;
    await time.advance(30_000);
    const tookMs = (b.terms[0]?.fromMs ?? Number.NaN) - diedMs;
    expect(tookMs).toBeGreaterThan(TIMINGS.durationMs - TIMINGS.retryMs * 2);
    expect(tookMs).toBeLessThanOrEqual(TIMINGS.durationMs + TIMINGS.retryMs * 1.25);
    expect(lab.overlapMs).toBe(0);
  });

  it.for([-3_600_000, 3_600_000])(
    "does not use other machines' clocks: one is off by %i ms",
    async (skewMs, { lab, time }) => {
      const a = lab.candidate("a");
      await time.advance(3_000);
      const b = lab.candidate("b", { skewMs });
      await time.advance(60_000);
      expect(b.terms).toEqual([]);
      await stop(lab, a, b);
      expect(lab.overlapMs).toBe(0);
    },
  );

  it("stops leading before another could, when the API server is gone for the leader alone", async ({ lab, time }) => {
    let isCut = false;
    const a = lab.candidate("a", { fault: () => (isCut ? "unreachable" : "ok") });
    await time.advance(3_000);
    const b = lab.candidate("b");
    await time.advance(3_000);
    isCut = true;
    await time.advance(40_000);
    const [first] = a.terms;
    const [second] = b.terms;
    expect((second?.fromMs ?? 0) - (first?.toMs ?? 0)).toBeGreaterThan(
      TIMINGS.durationMs - TIMINGS.renewDeadlineMs - 1,
    );
    expect(a.leading()?.signal.reason).toMatchObject({
      name: "LeadingEnded",
      message: "The lease could not be renewed in time",
    });
    expect(a.election.problem).toBe("Cannot read or write the Lease kube-system/berth-controller: no route");
    isCut = false;
    await time.advance(10_000);
    expect(a.election).toMatchObject({ isLeading: false, holder: "b", problem: undefined });
    expect(lab.overlapMs).toBe(0);
  });

  it("leads again when the API server is back for all", async ({ lab, time }) => {
    let isDown = false;
    const fault = (): "ok" | "unreachable" => (isDown ? "unreachable" : "ok");
    const [a, b] = [lab.candidate("a", { fault }), lab.candidate("b", { fault })];
    await time.advance(5_000);
    isDown = true;
    await time.advance(60_000);
    expect([a.election.isLeading, b.election.isLeading]).toEqual([false, false]);
    isDown = false;
    await time.advance(20_000);
    expect([a.election.isLeading, b.election.isLeading].filter(Boolean)).toHaveLength(1);
    expect(lab.overlapMs).toBe(0);
  });

  it("continues to lead after a short outage", async ({ lab, time }) => {
    let isDown = false;
    const a = lab.candidate("a", { fault: () => (isDown ? "unreachable" : "ok") });
    await time.advance(5_000);
    isDown = true;
    await time.advance(7_000);
    isDown = false;
    await time.advance(30_000);
    expect(a.terms).toHaveLength(1);
    expect(a.election).toMatchObject({ isLeading: true, problem: undefined });
  });

  it("does not lead again before the work of its last time has ended", async ({ lab, time }) => {
    let isDown = false;
    const a = lab.candidate("a", { isSlow: true, fault: () => (isDown ? "unreachable" : "ok") });
    await time.advance(5_000);
    isDown = true;
    await time.advance(15_000);
    isDown = false;
    await time.advance(30_000);
    expect(a.terms).toHaveLength(1);
    a.finish();
    await time.advance(5_000);
    expect(a.terms).toHaveLength(2);
  });

  it("stands aside for another while the work of its last time has not ended", async ({ lab, time }) => {
    let isCut = false;
    const a = lab.candidate("a", { isSlow: true, fault: () => (isCut ? "unreachable" : "ok") });
    await time.advance(3_000);
    const b = lab.candidate("b");
    await time.advance(3_000);
    isCut = true;
    await time.advance(12_000);
    isCut = false;
    await time.advance(20_000);
    a.finish();
    await time.advance(10_000);
    expect([a.election.isLeading, b.election.isLeading]).toEqual([false, true]);
  });
});

describe("an election, surprised", () => {
  it("knows its own write when the answer was lost", async ({ lab, time }) => {
    let lost = 1;
    const fault = ({ method }: KubeCall) => (method === "POST" && lost-- > 0 ? "lost answer" : "ok");
    const a = lab.candidate("a", { fault });
    await time.advance(5_000);
    expect(a.terms).toHaveLength(1);
    lost = 1;
    const b = lab.candidate("b");
    await time.advance(60_000);
    expect(b.terms).toEqual([]);
  });

  it("continues to lead when the answer to a renewal was lost", async ({ lab, time }) => {
    let lost = 0;
    const a = lab.candidate("a", {
      fault: ({ method }) => (method === "PUT" && lost-- > 0 ? "lost answer" : "ok"),
    });
    await time.advance(5_000);
    lost = 2;
    await time.advance(30_000);
    expect(a.terms).toHaveLength(1);
    expect(a.election.isLeading).toBe(true);
  });

  it("gives up at once when another process holds its Lease", async ({ lab, time }) => {
    const a = lab.candidate("a");
    await time.advance(5_000);
    lab.edit({ holderIdentity: "x" });
    await time.advance(2_500);
    expect(a.election).toMatchObject({ isLeading: false, holder: "x" });
    expect(a.leading()?.signal.reason).toMatchObject({ name: "LeadingEnded", message: 'The lease is held by "x"' });
    await time.advance(20_000);
    expect(a.terms).toHaveLength(2);
  });

  it("the holder recreates a Lease that was deleted by hand, and the other waits", async ({ lab, time }) => {
    const a = lab.candidate("a");
    await time.advance(5_000);
    const b = lab.candidate("b");
    await time.advance(5_000);
    lab.server.remove(NAME, LEASES);
    await time.advance(60_000);
    expect([a.terms.length, b.terms.length]).toEqual([1, 0]);
    expect(lab.spec.holderIdentity).toBe("a");
  });

  it("an older record of its own, out of a backup, does not make it lead beside another", async ({ lab, time }) => {
    let isCut = false;
    const b = lab.candidate("b", { fault: () => (isCut ? "hang" : "ok") });
    await time.advance(5_000);
    const backup = lab.lease ?? {};
    isCut = true;
    const a = lab.candidate("a");
    await time.advance(30_000);
    isCut = false;
    await time.advance(10_000);
    expect([a.election.isLeading, b.election.holder]).toEqual([true, "a"]);
    // Until a has just renewed, so that b looks first.
    const before = lab.writes;
    while (lab.writes === before) await time.advance(10);
    lab.server.put(LEASES, NAME, backup);
    await time.advance(60_000);
    expect(lab.overlapMs).toBe(0);
    expect([...a.terms, ...b.terms].length).toBeGreaterThan(2);
  });

  it("a process that was stopped for a while finds out before it acts", async ({ lab, time }) => {
    const a = lab.candidate("a");
    await time.advance(5_000);
    time.jump(11_000);
    const leading = a.leading();
    expect(leading?.signal.aborted).toBe(false);
    expect(() => leading?.require()).toThrow("The lease could not be renewed in time");
    expect(leading?.signal.aborted).toBe(true);
  });

  it("does not begin to lead with an answer that took too long", async ({ lab, time }) => {
    const api = lab.server.client();
    const a = lab.candidate("a", {
      api: {
        ...api,
        call: async (call) => {
          const answer = await api.call(call);
          if (call.method === "POST") time.jump(10_000);
          return answer;
        },
      },
    });
    await time.advance(100);
    expect(a.terms).toEqual([]);
    await time.advance(3_000);
    expect(a.terms).toHaveLength(1);
  });

  it("says what is refused", async ({ lab, time }) => {
    const a = lab.candidate("a", { fault: ({ method }) => (method === "POST" ? "forbidden" : "ok") });
    await time.advance(10_000);
    expect(a.election.problem).toBe(
      "Cannot read or write the Lease kube-system/berth-controller: leases are forbidden",
    );
    expect(a.terms).toEqual([]);
    void a.election.close();
  });

  it("leaves keys alone that it does not know", async ({ lab, time }) => {
    const a = lab.candidate("a");
    await time.advance(3_000);
    lab.edit({ strategy: "OldestEmulationVersion" }, { labels: { team: "net" } });
    await time.advance(10_000);
    expect(a.terms).toHaveLength(1);
    expect(lab.spec.strategy).toBe("OldestEmulationVersion");
    expect(lab.lease).toMatchObject({ metadata: { labels: { team: "net" } } });
  });

  it("refuses timings with which two could lead", ({ lab }) => {
    expect(() => lab.candidate("a", { timings: { ...TIMINGS, renewDeadlineMs: 15_000 } })).toThrow(
      "The lease cannot be held: the lease duration is 15000 ms, want more than the renew deadline of 15000 ms",
    );
  });
});
