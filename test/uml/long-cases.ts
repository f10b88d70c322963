/** Cases that only the long tests run (test/long/uml.test.ts): each takes this kernel some seconds. */

export const LONG_VARIABLE = "BERTH_UML_LONG";

/** Returns the cases of this run. */
export function ofRun<T extends { readonly isLong?: boolean }>(cases: readonly T[]): T[] {
  return cases.filter(({ isLong = false }) => !isLong || process.env[LONG_VARIABLE] !== undefined);
}
