/** Waiting for other programs: asks again and again, never for a fixed time. */
import { setTimeout as sleep } from "node:timers/promises";

const LEAST_MS = 10;
const MOST_MS = 200;
/** On a machine that runs other tests at the same time. */
const PATIENCE_MS = 30_000;

export const PATIENCE = { timeout: PATIENCE_MS };

/** Limit of effects that users are promised within five seconds: the gate runs other tests at the same time. */
export const SOON_MS = process.env.BERTH_LONG === undefined ? PATIENCE_MS : 5_000;

/**
 * The pause between two questions of a loop that began at `startMs`, by performance.now(): a tenth of the time that has
 * passed, so that a long wait does not keep the other program busy, and ends at most a tenth late.
 */
export async function pauseSince(startMs: number): Promise<void> {
  await sleep(Math.min(MOST_MS, Math.max(LEAST_MS, (performance.now() - startMs) / 10)));
}

/** Asks until the answer fits, for at most `limitMs`; the last answer otherwise. */
export async function eventually<T>(
  ask: () => Promise<T> | T,
  fits: (answer: T) => boolean,
  limitMs = PATIENCE_MS,
): Promise<T> {
  const startMs = performance.now();
  for (;;) {
    const answer = await ask();
    if (fits(answer) || performance.now() - startMs > limitMs) return answer;
    await pauseSince(startMs);
  }
}

/** Resolves when it is true, with the milliseconds that it took; rejects with its name after the limit. */
export async function until(
  what: string | (() => string),
  isTrue: () => Promise<boolean> | boolean,
  limitMs = PATIENCE_MS,
): Promise<number> {
  const startMs = performance.now();
  if (!(await eventually(isTrue, Boolean, limitMs)))
    throw new Error(`Not within ${limitMs} ms: ${typeof what === "string" ? what : what()}`);
  return performance.now() - startMs;
}

/** Asks until the answer is defined. Throws the text of `describe` after `limitMs`. */
export async function untilDefined<T>(
  ask: () => Promise<T | undefined>,
  describe: () => unknown,
  limitMs: number,
): Promise<T> {
  const answer = await eventually(ask, (found) => found !== undefined, limitMs);
  if (answer === undefined) throw new Error(`Not so after ${limitMs} ms: ${await describe()}`);
  return answer;
}
