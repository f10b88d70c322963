/** Returns what `attempt` returns; `otherwise` if it throws. For what is no error where it cannot be read or decoded. */
export function tryOr<T, U>(attempt: () => T, otherwise: U): T | U {
  try {
    return attempt();
  } catch {
    return otherwise;
  }
}
