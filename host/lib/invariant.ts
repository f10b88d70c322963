/** Bugs, as opposed to failures: a broken invariant ends the request, not the daemon. */

/** Thrown by {@link invariant}. Only the outermost catch of a request may handle it. */
class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws {@link InvariantError} with `message` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
