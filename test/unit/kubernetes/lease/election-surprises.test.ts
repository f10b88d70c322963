import { describe, expect, it } from "vitest";
import type { KubeCall } from "../../../../host/kubernetes/kube-api.ts";
import { LeadingEnded } from "../../../../host/kubernetes/lease/leading.ts";
import { candidate, FakeClock, FakeServer, overlapMs, TIMINGS } from "./lease-world.ts";

const start = () => ({ time: new FakeClock(), server: new FakeServer() });

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

  it("goes on leading when the answer to a renewal was lost", async () => {
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

  it("gives up at once when somebody else holds its lease", async () => {
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

  it("the holder makes a lease anew that was deleted by hand, and the other waits", async () => {
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
