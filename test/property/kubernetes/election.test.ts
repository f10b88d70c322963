import { expect, it } from "vitest";
import { candidate, FakeClock, FakeServer, overlapMs } from "../../unit/kubernetes/lease/lease-world.ts";

it("random faults never make two lead", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const [time, server] = [new FakeClock(), new FakeServer()];
    let state = seed;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const faults = ["ok", "unreachable", "lost answer", "hang"] as const;
    const fault = () => (random() < 0.5 ? "ok" : (faults[Math.floor(random() * faults.length)] ?? "ok"));
    const all = ["a", "b", "c"].map((name) => candidate(time, server, name, { fault, random }));
    await time.advance(600_000);
    expect(overlapMs(all, time.nowMs), `seed ${seed}`).toBe(0);
    expect(all.flatMap(({ terms }) => terms).length, `seed ${seed}`).toBeGreaterThan(0);
    if (seed % 5 === 0) {
      server.lease = undefined;
      await time.advance(100_000);
      expect(overlapMs(all, time.nowMs), `seed ${seed}, after the lease was deleted`).toBe(0);
    }
  }
});
