import { messageOf } from "./describe.ts";

/** Returns the result of `attempt`; `otherwise` if it throws. */
export function tryOr<T, U>(attempt: () => T, otherwise: U): T | U {
  return insteadOf(() => true, otherwise, attempt);
}

/** Returns the result of `attempt`; `otherwise` in place of an expected error. Throws others. */
export function insteadOf<T, U>(isExpected: (error: unknown) => boolean, otherwise: U, attempt: () => T): T | U {
  try {
    return attempt();
  } catch (error) {
    return orElse(isExpected, otherwise)(error);
  }
}

/** As insteadOf for a promise: the function to call when it rejects. */
export function orElse<T>(isExpected: (error: unknown) => boolean, otherwise: T): (error: unknown) => T {
  return (error) => {
    if (isExpected(error)) return otherwise;
    throw error;
  };
}

/** Returns the value; undefined if the read fails, and then a sentence among the problems says so. */
export async function orNote<T>(problems: string[], what: string, read: Promise<T>): Promise<T | undefined> {
  return read.catch((error: unknown) => {
    problems.push(`${what} cannot be read: ${messageOf(error)}`);
    return undefined;
  });
}
