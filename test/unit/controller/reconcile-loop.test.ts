import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RECONCILE_RETRY_MS, startReconciling } from "../../../host/controller/reconcile-loop.ts";
import { openLog } from "../../../host/lib/log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("a failed pass is retried after the rest, a pause and a back-off that grows", async () => {
  const startedMs = Date.now();
  const passes: number[] = [];
  const leading = new AbortController();
  const deps = { leading: leading.signal, log: openLog("test", "silent"), random: () => 0.5 };
  const loop = startReconciling(deps, {
    failure: "It failed",
    work: async () => {
      passes.push(Date.now() - startedMs);
      if (passes.length < 3) throw new Error("no answer");
      return undefined;
    },
    restMs: () => 100,
  });
  await vi.advanceTimersByTimeAsync(10_000);
  const second = 100 + RECONCILE_RETRY_MS + 100;
  expect(passes).toEqual([0, second, second + 100 + RECONCILE_RETRY_MS + 200]);
  loop.wake();
  leading.abort(new Error("It leads no more"));
  await vi.advanceTimersByTimeAsync(10_000);
  expect([passes.length, loop.problems]).toEqual([3, []]);
});
