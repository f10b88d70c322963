/** Compiled code is kept after a second, and once more when twenty calls have been answered. */
import pino from "pino";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CALLS_BEFORE_COMPLETE, startKeeping } from "../../../host/agent/keep-code.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const log = pino({ level: "silent" });

/** Returns what is kept when `begun` and `underWay` are so at each second. */
async function keptWith(seconds: readonly (readonly [begun: number, underWay: number])[]): Promise<boolean[]> {
  const kept: boolean[] = [];
  const calls = { begun: 0, underWay: 0 };
  const keeping = startKeeping({ calls, keep: async (isComplete) => void kept.push(isComplete), log });
  for (const [begun, underWay] of seconds) {
    Object.assign(calls, { begun, underWay });
    await vi.advanceTimersByTimeAsync(1_000);
  }
  keeping.close();
  await vi.advanceTimersByTimeAsync(5_000);
  return kept;
}

for (const [what, seconds, wanted] of [
  [
    "no call comes",
    [
      [0, 0],
      [0, 0],
      [0, 0],
    ],
    [false],
  ],
  [
    "a few calls come",
    [
      [3, 0],
      [CALLS_BEFORE_COMPLETE - 1, 0],
    ],
    [false],
  ],
  [
    "calls come later",
    [
      [0, 0],
      [CALLS_BEFORE_COMPLETE, 0],
      [90, 0],
    ],
    [false, true],
  ],
  [
    "many come at once",
    [
      [CALLS_BEFORE_COMPLETE, 0],
      [90, 0],
    ],
    [true],
  ],
  [
    "calls are under way",
    [
      [40, 2],
      [41, 1],
      [41, 0],
    ],
    [true],
  ],
] as const)
  it(`${what}: ${wanted.join(", ")}`, async () => expect(await keptWith(seconds)).toEqual(wanted));

it("code that cannot be kept is no error", async () => {
  const keep = vi.fn(() => Promise.reject(new Error("full")));
  const keeping = startKeeping({ calls: { begun: 90, underWay: 0 }, keep, log });
  await vi.advanceTimersByTimeAsync(3_000);
  expect(keep).toHaveBeenCalledOnce();
  keeping.close();
});
