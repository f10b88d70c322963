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
