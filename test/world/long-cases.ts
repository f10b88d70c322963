/**
 * Cases that take too long for the gate: `npm run test:long` has BERTH_LONG in the environment. The gate reports each
 * as a test to do, and counts those.
 */
import { describe, it } from "vitest";

const isLong = process.env.BERTH_LONG !== undefined;

/** `it`, for tests that are not in the gate. */
export const itLong = isLong ? it : it.todo;

/** `describe`, for such tests; all of them are one case. */
export const describeLong = isLong ? describe : (name: string, _cases: () => void): void => it.todo(name);

/** Returns the cases of this run: in the gate those for which `isShort` holds. */
export function ofRun<T>(cases: readonly T[], isShort: (each: T, index: number) => boolean): T[] {
  if (isLong) return [...cases];
  const short = cases.filter(isShort);
  for (let left = cases.length - short.length; left > 0; left -= 1) it.todo(`one of the long tests (${left})`);
  return short;
}

export const gateOrLong = <T>(gate: T, long: T): T => (isLong ? long : gate);

/** Returns how often a test tries something: `count` times in the gate, ten times as often in the long tests. */
export const times = (count: number): number => gateOrLong(count, 10 * count);
