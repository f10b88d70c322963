/**
 * Cases that take too long for the gate. The long tests run the files that have some, with BERTH_LONG in the
 * environment (test/long/kinds.test.ts).
 */
import { it } from "vitest";

export const LONG_VARIABLE = "BERTH_LONG";

export const isLong = process.env[LONG_VARIABLE] !== undefined;

/** Returns the cases of this run. */
export function ofRun<T extends { readonly isLong?: boolean }>(cases: readonly T[]): T[] {
  return cases.filter((each) => isLong || !each.isLong);
}

/** `it`, for tests that are not in the gate. */
const none = Object.assign(() => {}, { each: () => () => {}, for: () => () => {} });
export const itLong = (isLong ? it : none) as typeof it;

/** Returns how often a test tries something: `count` times in the gate, ten times as often in the long tests. */
export function times(count: number): number {
  return isLong ? 10 * count : count;
}
