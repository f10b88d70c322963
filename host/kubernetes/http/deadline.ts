/**
 * An abort signal with a timeout and parents.
 * Effects: a timer, until `end`.
 */

export interface Deadline {
  readonly signal: AbortSignal;
  /** Removes the timeout; the parents stay. */
  lift(): void;
  /** Releases timer and parents. */
  end(): void;
}

/** The reason of {@link Deadline.signal} after the timeout. */
class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  readonly code = "DEADLINE";
}

/** Aborts with a parent's reason if that aborts first, or already has. */
export function openDeadline(timeoutMs: number, parents: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  const error = () => new DeadlineError(`There was no answer within ${timeoutMs} ms`);
  const timer = setTimeout(() => controller.abort(error()), Math.max(timeoutMs, 0));
  const listeners = parents.map((parent) => {
    const listener = () => controller.abort(parent.reason);
    if (parent.aborted) listener();
    else parent.addEventListener("abort", listener, { once: true });
    return () => parent.removeEventListener("abort", listener);
  });
  return {
    signal: controller.signal,
    lift: () => clearTimeout(timer),
    end: () => {
      clearTimeout(timer);
      for (const remove of listeners) remove();
    },
  };
}

/** Resolves after the time; rejects with the signal's reason. */
export function pause(timeoutMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    }, timeoutMs);
    signal.addEventListener("abort", giveUp, { once: true });
  });
}
