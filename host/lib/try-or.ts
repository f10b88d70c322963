import { messageOf } from "./describe.ts";

/** Returns what `attempt` returns; `otherwise` if it throws, and that is no error. */
export function tryOr<T, U>(attempt: () => T, otherwise: U): T | U {
  return insteadOf(() => true, otherwise, attempt);
}

/** Returns what `attempt` returns; `otherwise` in place of an error that is expected. Others are thrown. */
export function insteadOf<T, U>(isExpected: (error: unknown) => boolean, otherwise: U, attempt: () => T): T | U {
  try {
    return attempt();
  } catch (error) {
    return orElse(isExpected, otherwise)(error);
  }
}

/** Returns the same for a promise, as what to call when it rejects. */
export function orElse<T>(isExpected: (error: unknown) => boolean, otherwise: T): (error: unknown) => T {
  return (error) => {
    if (isExpected(error)) return otherwise;
    throw error;
  };
}

/** Returns what is read; undefined if that fails, and a sentence says so among the problems. */
export async function orNote<T>(problems: string[], what: string, read: Promise<T>): Promise<T | undefined> {
  return read.catch((error: unknown) => {
    problems.push(`${what} cannot be read: ${messageOf(error)}`);
    return undefined;
  });
}
