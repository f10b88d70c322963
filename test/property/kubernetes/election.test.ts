import { expect, it } from "vitest";
import { Lab, LEASES, NAME } from "../../world/candidates.ts";

it("random faults never make two lead", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const lab = new Lab();
    let state = seed;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const faults = ["ok", "unreachable", "lost answer", "hang"] as const;
    const fault = () => (random() < 0.5 ? "ok" : (faults[Math.floor(random() * faults.length)] ?? "ok"));
    for (const name of ["a", "b", "c"]) lab.candidate(name, { fault, random });
    await lab.time.advance(600_000);
    expect(lab.overlapMs, `seed ${seed}`).toBe(0);
    expect(lab.all.flatMap(({ terms }) => terms).length, `seed ${seed}`).toBeGreaterThan(0);
    if (seed % 5 === 0) {
      lab.server.remove(NAME, LEASES);
      await lab.time.advance(100_000);
      expect(lab.overlapMs, `seed ${seed}, after the lease was deleted`).toBe(0);
    }
  }
});
