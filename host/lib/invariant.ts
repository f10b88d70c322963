/**
 * Bugs, as opposed to failures: a broken invariant ends the request that met it, never the daemon.
 * Called from every layer; knows nothing of any.
 */

/** Thrown by {@link invariant}; nobody but the outermost catch of a request may handle it. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws {@link InvariantError} with `message` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** For the end of an exhaustive `switch`: the compiler proves that it is never reached. */
export function unreachable(value: never): never {
  throw new InvariantError(`Unexpected value ${JSON.stringify(value)}`);
}
