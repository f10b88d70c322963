import type { Clock } from "../../host/agent/request/add-deadline.ts";
import type { ElectionClock } from "../../host/kubernetes/lease/leading.ts";

interface ClockOptions {
  readonly ms?: number;
  readonly isHasty?: boolean;
}

/** Time that stands still until a test moves it. Several nodes may share it. */
export class TestClock implements Clock, ElectionClock {
  ms: number;
  readonly sleepers = new Set<{ readonly dueMs: number; readonly wake: () => void }>();
  readonly nowMs = (): number => this.ms;
  readonly #isHasty: boolean;

  /** `isHasty`: a sleeper moves the time instead of waiting for the test. */
  constructor({ ms = 1_000_000, isHasty = false }: ClockOptions = {}) {
    this.ms = ms;
    this.#isHasty = isHasty;
  }

  readonly sleep = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    if (this.#isHasty) {
      this.ms += milliseconds;
      await new Promise(setImmediate);
      return signal.throwIfAborted();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper = { dueMs: this.ms + milliseconds, wake: resolve };
    const end = (): void => reject(signal.reason);
    this.sleepers.add(sleeper);
    signal.addEventListener("abort", end, { once: true });
    await promise.finally(() => this.sleepers.delete(sleeper));
  };

  readonly pause = this.sleep;

  /** Wakes the sleepers on the way, each at its time, and lets everything that follows happen. */
  async advance(milliseconds: number): Promise<void> {
    const endMs = this.ms + milliseconds;
    await flushMicrotasks();
    for (;;) {
      const [next] = [...this.sleepers].toSorted((a, b) => a.dueMs - b.dueMs);
      if (next === undefined || next.dueMs > endMs) break;
      this.sleepers.delete(next);
      this.ms = Math.max(this.ms, next.dueMs);
      next.wake();
      await flushMicrotasks();
    }
    this.ms = Math.max(this.ms, endMs);
    await flushMicrotasks();
  }

  /** The machine was stopped: time has passed, and no timer has fired yet. */
  readonly jump = (milliseconds: number): void => {
    this.ms += milliseconds;
  };
}

async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 60; turn++) await Promise.resolve();
}
