/** Returns what `attempt` returns; `otherwise` if it throws, and that is no error. */
export function tryOr<T, U>(attempt: () => T, otherwise: U): T | U {
  try {
    return attempt();
  } catch {
    return otherwise;
  }
}
