import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ROUND_FAILED_MS, Rounds } from "../../../host/controller/rounds.ts";
import { openLog } from "../../../host/lib/log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const REST_MS = 100;

function open(work: (round: number) => Promise<number | undefined>) {
  let rounds = 0;
  const leading = new AbortController();
  const opened = new Rounds({
    ...{ failure: "It failed", restMs: () => REST_MS, leading: leading.signal },
    ...{ log: openLog("test", "silent"), random: () => 0.5 },
    work: () => work(++rounds),
  });
  return { opened, leading, rounds: () => rounds };
}

describe("rounds", () => {
  it("begin at once, and then only when something has changed", async () => {
    const { opened, rounds } = open(async () => undefined);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(rounds()).toBe(1);
    opened.wake();
    await vi.advanceTimersByTimeAsync(REST_MS - 1);
    expect(rounds()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(rounds()).toBe(2);
  });
  it("of many changes make one, and one after a change that came during a round", async () => {
    const { opened, rounds } = open(async (round) => {
      if (round === 1) for (let change = 0; change < 5; change++) opened.wake();
      return undefined;
    });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(rounds()).toBe(2);
  });
  it.each(Array.from({ length: 12 }, (_, ticks) => [ticks]))(
    "follow a change that comes %d microtasks after the work's end",
    async (ticks) => {
      const { opened, rounds } = open(async (round) => {
        if (round === 1) void soon();
        return undefined;
      });
      const soon = async (): Promise<void> => {
        for (let tick = 0; tick < ticks; tick++) await undefined;
        opened.wake();
      };
      await vi.advanceTimersByTimeAsync(10_000);
      expect(rounds()).toBe(2);
      opened.wake();
      await vi.advanceTimersByTimeAsync(10_000);
      expect(rounds()).toBe(3);
    },
  );
  it("come when the last one said so, though not without a rest", async () => {
    const { rounds } = open(async (round) => (round === 1 ? 1_000 : round === 2 ? 0 : undefined));
    await vi.advanceTimersByTimeAsync(999);
    expect(rounds()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(rounds()).toBe(2);
    await vi.advanceTimersByTimeAsync(REST_MS);
    expect(rounds()).toBe(3);
  });
  it("that fail are tried again after a pause, which changes do not shorten, and are told until one succeeds", async () => {
    const { opened, rounds } = open(async (round) => {
      if (round < 3) throw new Error("no answer");
      return undefined;
    });
    await vi.advanceTimersByTimeAsync(0);
    opened.wake();
    expect(opened.problems).toEqual(["It failed: no answer"]);
    await vi.advanceTimersByTimeAsync(ROUND_FAILED_MS);
    expect(rounds()).toBe(1);
    await vi.advanceTimersByTimeAsync(ROUND_FAILED_MS);
    expect(rounds()).toBe(2);
    await vi.advanceTimersByTimeAsync(ROUND_FAILED_MS);
    expect(rounds()).toBe(3);
    expect(opened.problems).toEqual([]);
  });
  it("end with the lead, and a failure then is none", async () => {
    const { opened, leading, rounds } = open(async (round) => {
      if (round === 1) return undefined;
      leading.abort(new Error("It leads no more"));
      throw leading.signal.reason;
    });
    await vi.advanceTimersByTimeAsync(0);
    opened.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    opened.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(rounds()).toBe(2);
    expect(opened.problems).toEqual([]);
  });
  it("that are closed end with the one that runs", async () => {
    let finish = () => {};
    const { opened, rounds } = open(
      () =>
        new Promise((resolve) => {
          finish = () => resolve(0);
        }),
    );
    await vi.advanceTimersByTimeAsync(0);
    let isClosed = false;
    const closing = opened.close().then(() => {
      isClosed = true;
    });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isClosed).toBe(false);
    finish();
    await closing;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(rounds()).toBe(1);
  });
});
