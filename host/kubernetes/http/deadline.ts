/**
 * A signal that ends by itself after a time, and with any of its parents.
 * Effects: a timer, until `end`.
 */

export interface Deadline {
  readonly signal: AbortSignal;
  /** Takes the time away; the parents stay. */
  lift(): void;
  /** Lets go of timer and parents. */
  end(): void;
}

/** The reason of {@link Deadline.signal} when the time was over. */
class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  readonly code = "DEADLINE";
}

/** With a parent's reason when that ends first; a parent that has ended already counts. */
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

/** Rejects with the signal's reason. */
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
