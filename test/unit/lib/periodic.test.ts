import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type PeriodicOptions, PeriodicWorker } from "../../../host/lib/periodic.ts";
import { recordLog } from "../../world/recorded-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const REST_MS = 100;
const RETRY_MS = 1_000;

function start(work: (run: number) => Promise<number | undefined>, options: Partial<PeriodicOptions> = {}) {
  let runs = 0;
  const ending = new AbortController();
  const { log, lines } = recordLog();
  const worker = new PeriodicWorker({
    failure: "It failed",
    work: () => work(++runs),
    restMs: () => REST_MS,
    retryMs: (failures) => failures * RETRY_MS,
    signal: ending.signal,
    log,
    ...options,
  });
  return { worker, ending, lines, runs: () => runs };
}

describe("a periodic worker", () => {
  it("runs at once, and then only when it is woken", async () => {
    const { worker, runs } = start(async () => undefined);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs()).toBe(1);
    worker.wake();
    await vi.advanceTimersByTimeAsync(REST_MS - 1);
    expect(runs()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs()).toBe(2);
  });

  it("runs first after the delay that it is given", async () => {
    const { runs } = start(async () => undefined, { firstMs: 500 });
    await vi.advanceTimersByTimeAsync(499);
    expect(runs()).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs()).toBe(1);
  });

  it("runs once for many wakes, and once more for one that came during a run", async () => {
    const { worker, runs } = start(async (run) => {
      if (run === 1) for (let wakes = 0; wakes < 5; wakes++) worker.wake();
      return undefined;
    });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs()).toBe(2);
  });

  it.each(Array.from({ length: 12 }, (_, ticks) => [ticks]))(
    "runs again when it is woken %d microtasks after the end of its work",
    async (ticks) => {
      const { worker, runs } = start(async (run) => {
        if (run === 1) void wakeLater();
        return undefined;
      });
      const wakeLater = async (): Promise<void> => {
        for (let tick = 0; tick < ticks; tick++) await undefined;
        worker.wake();
      };
      await vi.advanceTimersByTimeAsync(10_000);
      expect(runs()).toBe(2);
      worker.wake();
      await vi.advanceTimersByTimeAsync(10_000);
      expect(runs()).toBe(3);
    },
  );

  it("runs again when the work says so, but not before the rest is over", async () => {
    const { runs } = start(async (run) => (run === 1 ? 1_000 : run === 2 ? 0 : undefined));
    await vi.advanceTimersByTimeAsync(999);
    expect(runs()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs()).toBe(2);
    await vi.advanceTimersByTimeAsync(REST_MS);
    expect(runs()).toBe(3);
  });

  it("does not run while the last run lasts", async () => {
    const run = Promise.withResolvers<undefined>();
    const { worker, runs } = start(() => run.promise);
    await vi.advanceTimersByTimeAsync(0);
    worker.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs()).toBe(1);
    run.resolve(undefined);
    await vi.advanceTimersByTimeAsync(REST_MS);
    expect(runs()).toBe(2);
  });

  it("retries a failed run after a pause that wakes do not shorten, and names the problem until one succeeds", async () => {
    const { worker, runs } = start(async (run) => {
      if (run < 3) throw new Error("no answer");
      return undefined;
    });
    await vi.advanceTimersByTimeAsync(0);
    worker.wake();
    expect(worker.problems).toEqual(["It failed: no answer"]);
    await vi.advanceTimersByTimeAsync(RETRY_MS - 1);
    expect(runs()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs()).toBe(2);
    await vi.advanceTimersByTimeAsync(2 * RETRY_MS);
    expect(runs()).toBe(3);
    expect(worker.problems).toEqual([]);
  });

  it("logs a persistent failure once, another one, and the same one after a success", async () => {
    const failures = ["full", "full", "full", "broken", "", "broken"];
    const { lines } = start(async () => {
      const failure = failures.shift();
      if (failure) throw new Error(failure);
      return failure === undefined ? undefined : REST_MS;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(failures).toEqual([]);
    expect(lines).toEqual(Array.from({ length: 3 }, () => "warn It failed; retrying"));
  });

  it("skips runs that are not due, and does not take that for success", async () => {
    let isDue = true;
    const { worker, runs, lines } = start(
      async () => {
        isDue = false;
        throw new Error("no answer");
      },
      { isDue: () => isDue, checkMs: 500 },
    );
    await vi.advanceTimersByTimeAsync(RETRY_MS + 700);
    expect([runs(), worker.problems]).toEqual([1, ["It failed: no answer"]]);
    isDue = true;
    await vi.advanceTimersByTimeAsync(300);
    expect([runs(), lines]).toEqual([2, ["warn It failed; retrying"]]);
  });

  it("ends with its signal, and does not report the failure of its last run", async () => {
    const { worker, ending, lines, runs } = start(async (run) => {
      if (run === 1) return undefined;
      ending.abort(new Error("It is over"));
      throw ending.signal.reason;
    });
    await vi.advanceTimersByTimeAsync(0);
    worker.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    worker.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    expect([runs(), worker.problems, lines]).toEqual([2, [], []]);
  });

  it("waits as long as an error says, keeps it as its problem, and runs meanwhile when it is woken", async () => {
    const refusal = Object.assign(new Error("no label"), { restMs: 5_000 });
    const { worker, lines, runs } = start(() => Promise.reject(refusal));
    await vi.advanceTimersByTimeAsync(4_999);
    expect([runs(), worker.problems, lines]).toEqual([1, ["It failed: no label"], []]);
    await vi.advanceTimersByTimeAsync(1);
    worker.wake();
    await vi.advanceTimersByTimeAsync(REST_MS);
    expect(runs()).toBe(3);
  });

  it("is closed when its run has ended, and runs no more", async () => {
    const run = Promise.withResolvers<number>();
    const { worker, runs } = start(() => run.promise);
    await vi.advanceTimersByTimeAsync(0);
    let isClosed = false;
    const closing = worker.close().then(() => {
      isClosed = true;
    });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(isClosed).toBe(false);
    run.resolve(0);
    await closing;
    worker.wake();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs()).toBe(1);
  });
});
