import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EXPIRE_INTERVAL_MS, SPOOL_INTERVAL_MS, startMaintenance } from "../../../host/agent/agent.ts";
import { recordLog } from "../../world/recorded-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function start(probe = async (begin: () => void): Promise<void> => begin()) {
  const calls: string[] = [];
  const { log, lines } = recordLog();
  const maintenance = startMaintenance({
    registry: { expire: async () => void calls.push("expire") },
    spool: { drain: async () => void calls.push("drain") },
    log,
    probeQuarantined: () => probe(() => calls.push("probe")),
  });
  return { maintenance, calls, lines };
}

describe("the maintenance", () => {
  it("frees, probes and drains, until it is closed", async () => {
    const { maintenance, calls } = start();
    await vi.advanceTimersByTimeAsync(SPOOL_INTERVAL_MS);
    const second = ["expire", "probe"];
    expect(calls.toSorted()).toEqual([...second, ...second, "drain"].toSorted());
    maintenance.close();
    await vi.advanceTimersByTimeAsync(10 * SPOOL_INTERVAL_MS);
    expect(calls).toHaveLength(5);
  });

  it("probes again only when the last probes have ended, whether or not they failed", async () => {
    const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
    const { maintenance, calls, lines } = start((begin) => {
      begin();
      return new Promise((resolve, reject) => ends.push({ resolve, reject }));
    });
    const probes = (): number => calls.filter((call) => call === "probe").length;
    await vi.advanceTimersByTimeAsync(5 * EXPIRE_INTERVAL_MS);
    expect(probes()).toBe(1);
    ends[0]?.reject(new Error("broken"));
    await vi.advanceTimersByTimeAsync(5 * EXPIRE_INTERVAL_MS);
    expect(probes()).toBe(2);
    ends[1]?.resolve();
    await vi.advanceTimersByTimeAsync(EXPIRE_INTERVAL_MS);
    expect([probes(), lines]).toEqual([3, ["warn Probing quarantined addresses failed; retrying"]]);
    maintenance.close();
  });
});
