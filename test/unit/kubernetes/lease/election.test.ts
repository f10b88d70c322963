import { describe, expect, it } from "vitest";
import type { KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import { LeadingEnded } from "../../../../host/kubernetes/lease/leading.ts";
import { candidate, FakeClock, FakeServer, type LabCandidate, overlapMs, TIMINGS } from "./lease-world.ts";

const start = () => ({ time: new FakeClock(), server: new FakeServer() });

/** A clean stop, on a clock that stands still. */
async function stop(time: FakeClock, ...candidates: LabCandidate[]): Promise<void> {
  const closed = Promise.all(candidates.map(({ election }) => election.close()));
  await time.advance(20_000);
  await closed;
}

describe("an election", () => {
  it("has one leader of two, who renews", async () => {
    const { time, server } = start();
    const [a, b] = [candidate(time, server, "a"), candidate(time, server, "b")];
    await time.advance(120_000);
    expect([a.terms.length, b.terms.length].sort()).toEqual([0, 1]);
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
    const renewals = server.calls.filter(({ method }) => method === "PUT").length;
    expect(renewals).toBeGreaterThan(50);
    expect(server.spec).toMatchObject({ holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0 });
    expect([a.election.isLeading, b.election.isLeading, b.election.holder]).toEqual([true, false, "a"]);
    await stop(time, a, b);
  });

  it("hands over at once when the leader stops, and counts it", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a");
    await time.advance(5_000);
    const b = candidate(time, server, "b");
    await time.advance(5_000);
    const beganMs = time.nowMs;
    const closed = a.election.close();
    await time.advance(2_500);
    await closed;
    expect(b.terms[0]?.fromMs).toBeLessThanOrEqual(beganMs + 2_500);
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
    expect(server.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    await stop(time, b);
    expect(server.spec.holderIdentity).toBeUndefined();
  });

  it("releases the Lease only when no part acts as the leader any more", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a", { isSlow: true });
    await time.advance(3_000);
    const closed = a.election.close();
    await time.advance(4_000);
    expect(a.leading()?.signal.aborted).toBe(true);
    expect(server.spec.holderIdentity).toBe("a");
    a.finish();
    await time.advance(100);
    await closed;
    expect(server.spec.holderIdentity).toBeUndefined();
  });

  it("waits for a leader that died, by its own clock", async () => {
    const { time, server } = start();
    let isDead = false;
    const a = candidate(time, server, "a", { fault: () => (isDead ? "hang" : "ok") });
    await time.advance(3_000);
    const b = candidate(time, server, "b");
    await time.advance(4_000);
    isDead = true;
    const diedMs = time.nowMs;
    await time.advance(30_000);
    const tookMs = (b.terms[0]?.fromMs ?? Number.NaN) - diedMs;
    expect(tookMs).toBeGreaterThan(TIMINGS.durationMs - TIMINGS.retryMs * 2);
    expect(tookMs).toBeLessThanOrEqual(TIMINGS.durationMs + TIMINGS.retryMs * 1.25);
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
  });

  it.each([-3_600_000, 3_600_000])("does not use other machines' clocks: one is off by %i ms", async (skewMs) => {
    const { time, server } = start();
    const a = candidate(time, server, "a");
    await time.advance(3_000);
    const b = candidate(time, server, "b", { skewMs });
    await time.advance(60_000);
    expect(b.terms).toEqual([]);
    await stop(time, a, b);
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
  });

  it("stops leading before another could, when the API server is gone for the leader alone", async () => {
    const { time, server } = start();
    let isCut = false;
    const a = candidate(time, server, "a", { fault: () => (isCut ? "unreachable" : "ok") });
    await time.advance(3_000);
    const b = candidate(time, server, "b");
    await time.advance(3_000);
    isCut = true;
    await time.advance(40_000);
    const [first] = a.terms;
    const [second] = b.terms;
    expect((second?.fromMs ?? 0) - (first?.toMs ?? 0)).toBeGreaterThan(
      TIMINGS.durationMs - TIMINGS.renewDeadlineMs - 1,
    );
    expect(a.leading()?.signal.reason).toEqual(new LeadingEnded("The lease could not be renewed in time"));
    expect(a.election.problem).toBe("Cannot read or write the Lease kube-system/berth-controller: no route");
    isCut = false;
    await time.advance(10_000);
    expect(a.election).toMatchObject({ isLeading: false, holder: "b", problem: undefined });
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
  });

  it("leads again when the API server is back for all", async () => {
    const { time, server } = start();
    let isDown = false;
    const fault = (): "ok" | "unreachable" => (isDown ? "unreachable" : "ok");
    const [a, b] = [candidate(time, server, "a", { fault }), candidate(time, server, "b", { fault })];
    await time.advance(5_000);
    isDown = true;
    await time.advance(60_000);
    expect([a.election.isLeading, b.election.isLeading]).toEqual([false, false]);
    isDown = false;
    await time.advance(20_000);
    expect([a.election.isLeading, b.election.isLeading].filter(Boolean)).toHaveLength(1);
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
  });

  it("continues to lead after a short outage", async () => {
    const { time, server } = start();
    let isDown = false;
    const a = candidate(time, server, "a", { fault: () => (isDown ? "unreachable" : "ok") });
    await time.advance(5_000);
    isDown = true;
    await time.advance(7_000);
    isDown = false;
    await time.advance(30_000);
    expect(a.terms).toHaveLength(1);
    expect(a.election).toMatchObject({ isLeading: true, problem: undefined });
  });

  it("does not lead again before the work of its last time has ended", async () => {
    const { time, server } = start();
    let isDown = false;
    const a = candidate(time, server, "a", { isSlow: true, fault: () => (isDown ? "unreachable" : "ok") });
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

  it("stands aside for another while the work of its last time has not ended", async () => {
    const { time, server } = start();
    let isCut = false;
    const a = candidate(time, server, "a", { isSlow: true, fault: () => (isCut ? "unreachable" : "ok") });
    await time.advance(3_000);
    const b = candidate(time, server, "b");
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
  it("knows its own write when the answer was lost", async () => {
    const { time, server } = start();
    let lost = 1;
    const fault = ({ method }: KubeCall) => (method === "POST" && lost-- > 0 ? "lost answer" : "ok");
    const a = candidate(time, server, "a", { fault });
    await time.advance(5_000);
    expect(a.terms).toHaveLength(1);
    lost = 1;
    const b = candidate(time, server, "b");
    await time.advance(60_000);
    expect(b.terms).toEqual([]);
  });

  it("continues to lead when the answer to a renewal was lost", async () => {
    const { time, server } = start();
    let lost = 0;
    const a = candidate(time, server, "a", {
      fault: ({ method }) => (method === "PUT" && lost-- > 0 ? "lost answer" : "ok"),
    });
    await time.advance(5_000);
    lost = 2;
    await time.advance(30_000);
    expect(a.terms).toHaveLength(1);
    expect(a.election.isLeading).toBe(true);
  });

  it("gives up at once when another process holds its Lease", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a");
    await time.advance(5_000);
    const { metadata } = server.lease as { metadata: object };
    server.lease = {
      ...server.lease,
      metadata: { ...metadata, resourceVersion: "9000" },
      spec: { ...server.spec, holderIdentity: "x" },
    };
    await time.advance(2_500);
    expect(a.election).toMatchObject({ isLeading: false, holder: "x" });
    expect(a.leading()?.signal.reason).toEqual(new LeadingEnded('The lease is held by "x"'));
    await time.advance(20_000);
    expect(a.terms).toHaveLength(2);
  });

  it("the holder recreates a Lease that was deleted by hand, and the other waits", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a");
    await time.advance(5_000);
    const b = candidate(time, server, "b");
    await time.advance(5_000);
    server.lease = undefined;
    await time.advance(60_000);
    expect([a.terms.length, b.terms.length]).toEqual([1, 0]);
    expect(server.spec.holderIdentity).toBe("a");
  });

  it("an older record of its own, out of a backup, does not make it lead beside another", async () => {
    const { time, server } = start();
    let isCut = false;
    const b = candidate(time, server, "b", { fault: () => (isCut ? "hang" : "ok") });
    await time.advance(5_000);
    const backup = structuredClone(server.lease);
    isCut = true;
    const a = candidate(time, server, "a");
    await time.advance(30_000);
    isCut = false;
    await time.advance(10_000);
    expect([a.election.isLeading, b.election.holder]).toEqual([true, "a"]);
    // Until a has just renewed, so that b looks first.
    const before = server.version;
    while (server.version === before) await time.advance(10);
    server.lease = backup;
    await time.advance(60_000);
    expect(overlapMs([a, b], time.nowMs)).toBe(0);
    expect([...a.terms, ...b.terms].length).toBeGreaterThan(2);
  });

  it("a process that was stopped for a while finds out before it acts", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a");
    await time.advance(5_000);
    time.jump(11_000);
    const leading = a.leading();
    expect(leading?.signal.aborted).toBe(false);
    expect(() => leading?.require()).toThrow("The lease could not be renewed in time");
    expect(leading?.signal.aborted).toBe(true);
  });

  it("does not begin to lead with an answer that took too long", async () => {
    const { time, server } = start();
    const api = server.api();
    const a = candidate(time, server, "a", {
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

  it("says what is refused", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a", { fault: ({ method }) => (method === "POST" ? "forbidden" : "ok") });
    await time.advance(10_000);
    expect(a.election.problem).toBe(
      "Cannot read or write the Lease kube-system/berth-controller: leases are forbidden",
    );
    expect(a.terms).toEqual([]);
    void a.election.close();
  });

  it("leaves keys alone that it does not know", async () => {
    const { time, server } = start();
    const a = candidate(time, server, "a");
    await time.advance(3_000);
    const { metadata } = server.lease as { metadata: { resourceVersion: string } };
    const changed = { ...metadata, labels: { team: "net" }, resourceVersion: "9000" };
    server.lease = { ...server.lease, metadata: changed, spec: { ...server.spec, strategy: "OldestEmulationVersion" } };
    await time.advance(10_000);
    expect(a.terms).toHaveLength(1);
    expect(server.spec.strategy).toBe("OldestEmulationVersion");
    expect(server.lease).toMatchObject({ metadata: { labels: { team: "net" } } });
  });

  it("refuses timings with which two could lead", () => {
    const { time, server } = start();
    expect(() => candidate(time, server, "a", { timings: { ...TIMINGS, renewDeadlineMs: 15_000 } })).toThrow(
      "The lease cannot be held: the lease duration is 15000 ms, want more than the renew deadline of 15000 ms",
    );
  });
});
